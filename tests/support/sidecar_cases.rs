//! The cases of `tests/sidecars`: configurations of one sidecar each, which the API server refuses
//! in every pod, or takes. `tests/sidecars/README.md` has the format.

use std::path::Path;

/// A configuration file with one sidecar.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) text: String,
}

impl Case {
    /// Where its fault is, and a piece of what is said of it: its first line is
    /// `# LINE:COLUMN PIECE`.
    pub(crate) fn fault(&self) -> (String, &str) {
        let first = self.text.lines().next().and_then(|line| line.strip_prefix("# ")).expect("a first line with `# `");
        let (place, said) = first.split_once(' ').expect("a place and a piece of the message");
        let (line, column) = place.split_once(':').expect("a line and a column");
        (format!("line {line}, column {column}: "), said)
    }
}

/// The cases of a folder, `refused` or `taken`, by name.
pub(crate) fn cases(folder: &str) -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sidecars").join(folder);
    let mut cases: Vec<Case> = std::fs::read_dir(folder)
        .expect("the cases are there")
        .map(|entry| {
            let path = entry.expect("the folder can be read").path();
            let name = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
            Case { name, text: std::fs::read_to_string(&path).expect("a case can be read") }
        })
        .collect();
    assert!(!cases.is_empty());
    cases.sort_by(|one, other| one.name.cmp(&other.name));
    cases
}
