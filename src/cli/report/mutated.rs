//! What would be stored: YAML, a document for each object.

use std::io::{self, Write};

use crate::check::{Report, Stored};
use crate::cli::terminal::printable;

pub(in crate::cli) fn mutated(report: &Report, output: &mut dyn Write) -> io::Result<()> {
    for stored in &report.stored {
        match stored {
            Stored::As(object) => {
                let object = serde_saphyr::to_string(object).map_err(io::Error::other)?;
                write!(output, "---\n{object}")?;
            }
            Stored::Refused(title) => writeln!(output, "---\n# {} is denied", printable(title))?,
        }
    }
    Ok(())
}
