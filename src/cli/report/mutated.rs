//! What would be stored: YAML, a document for each object.

use std::io;

use crate::check::{Report, Stored};

pub(in crate::cli) fn mutated(report: &Report) -> io::Result<String> {
    let mut documents = String::new();
    for stored in &report.stored {
        documents += "---\n";
        match stored {
            Stored::As(object) => documents += &serde_saphyr::to_string(object).map_err(io::Error::other)?,
            Stored::Refused(title) => {
                let title: String = title.chars().filter(|character| !character.is_control()).collect();
                documents.extend(["# ", &title, " is denied\n"]);
            }
        }
    }
    Ok(documents)
}
