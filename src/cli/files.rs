//! The files that a command line names: files, directories, standard input.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The largest file to read, in bytes.
const FILE_MAX: u64 = 64 << 20;

/// The endings of manifests, by which files in directories are chosen.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// The files that kustomize reads its own settings from, which need no kind: what it builds is judged.
const KUSTOMIZATIONS: [&str; 2] = ["kustomization.yaml", "kustomization.yml"];

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    #[error("cannot read {}: {error}", path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("there is no *.yaml, *.yml or *.json in {}", .0.display())]
    NoManifests(PathBuf),
    #[error("{} is larger than {} MiB: check its parts", .0.display(), FILE_MAX >> 20)]
    TooLarge(PathBuf),
}

/// The files that a path stands for: itself, or all manifests in and below a directory, in the
/// order of their names. What begins with a dot is left out, and so are kustomizations.
pub(super) fn below(path: &Path) -> Result<Vec<PathBuf>, FileError> {
    if path.as_os_str() == "-" || !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    let mut directories = vec![path.to_owned()];
    while let Some(directory) = directories.pop() {
        let unreadable = |error| FileError::Unreadable { path: directory.clone(), error };
        for entry in std::fs::read_dir(&directory).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            // A link to a directory is not followed, for it may lead back.
            if entry.file_type().map_err(unreadable)?.is_dir() {
                directories.push(entry.path());
            } else if is_manifest(&entry.path()) && entry.path().is_file() {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    if files.is_empty() { Err(FileError::NoManifests(path.to_owned())) } else { Ok(files) }
}

fn is_manifest(path: &Path) -> bool {
    let is_kustomization = path.file_name().is_some_and(|name| KUSTOMIZATIONS.iter().any(|known| name == *known));
    let ending = path.extension().and_then(|ending| ending.to_str());
    !is_kustomization && ending.is_some_and(|ending| ENDINGS.contains(&ending))
}

/// Reads a file, or standard input for `-`.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    let unreadable = |error| FileError::Unreadable { path: path.to_owned(), error };
    let input: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(io::stdin())
    } else {
        Box::new(std::fs::File::open(path).map_err(unreadable)?)
    };
    let mut bytes = Vec::new();
    input.take(FILE_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > FILE_MAX { Err(FileError::TooLarge(path.to_owned())) } else { Ok(bytes) }
}
