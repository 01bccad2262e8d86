//! An image reference: what was read is what was written, and the full name of a repository is the
//! full name of itself.

#![no_main]

use libfuzzer_sys::fuzz_target;
use podgate::pod::{ImageReference, RepositoryPrefix};

fuzz_target!(|text: &str| {
    if let Ok(prefix) = RepositoryPrefix::parse(text) {
        let below = format!("{text}/x");
        let below = ImageReference::parse(&below).expect("a prefix with a name behind it is a repository");
        assert!(prefix.strip_from(&below.full_repository()).is_some(), "{prefix} is no beginning");
    }
    let reference = match ImageReference::parse(text) {
        Ok(reference) => reference,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let mut written = reference.repository.to_owned();
    if let Some(tag) = reference.tag {
        written = [&written, ":", tag].concat();
    }
    if let Some(digest) = reference.digest {
        written = [&written, "@", digest].concat();
    }
    assert_eq!(written, text);
    let full = reference.full_repository();
    let domain = full.split('/').next().unwrap_or_default();
    // UPPER is a registry only for its upper case, and full names have it in lower case.
    let is_registry = domain == "localhost" || domain.contains(['.', ':']);
    // The full name may be longer than a name may be.
    if let Some(again) = ImageReference::parse(&full).ok().filter(|_| is_registry) {
        assert_eq!((again.full_repository().as_str(), again.tag, again.digest), (full.as_str(), None, None));
    }
});
