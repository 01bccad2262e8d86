//! Image references, by the grammar of Go's `distribution/reference`.

use std::fmt;

use serde::{Deserialize, Deserializer};

use crate::beginning::beginning;

/// The most characters that the path of a repository in full may have: without its registry, and with
/// the `library/` of an official image.
const PATH_LENGTH_MAX: usize = 255;

/// The most characters that a tag may have.
const TAG_LENGTH_MAX: usize = 128;

/// The most characters of a wrong part that an error repeats.
const REPEATED_MAX: usize = 256;

/// The registry of an image that names none, as it is called and as it was once called.
const DEFAULT_DOMAIN: &str = "docker.io";
const FORMER_DEFAULT_DOMAIN: &str = "index.docker.io";

/// Where that registry keeps an image whose name is one word.
const OFFICIAL_IMAGES: &str = "library";

/// A reference to an image, as `reference.ParseNormalizedNamed` of
/// [`github.com/distribution/reference`](https://pkg.go.dev/github.com/distribution/reference)
/// reads it: `[domain[:port]/]path[:tag][@digest]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageReference<'a> {
    /// Domain and path as written, without tag and digest.
    pub repository: &'a str,
    /// The tag, where one is written.
    pub tag: Option<&'a str>,
    /// The digest, where one is written: well formed, and of an algorithm that registries use.
    pub digest: Option<&'a str>,
}

impl<'a> ImageReference<'a> {
    /// Reads a reference.
    ///
    /// # Errors
    /// What a container runtime would refuse, with the reason.
    pub fn parse(text: &'a str) -> Result<Self, InvalidReference> {
        if text.is_empty() {
            return Err(InvalidReference::Empty);
        }
        if is_hex(text, 64) {
            return Err(InvalidReference::Identifier);
        }
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest)),
            None => (text, None),
        };
        // A colon before the last slash belongs to the domain's port.
        let path_start = rest.rfind('/').map_or(0, |slash| slash + 1);
        let (repository, tag) = match rest[path_start..].find(':') {
            Some(colon) => (&rest[..path_start + colon], Some(&rest[path_start + colon + 1..])),
            None => (rest, None),
        };
        check_repository(repository)?;
        if let Some(tag) = tag.filter(|tag| !is_tag(tag)) {
            return Err(InvalidReference::Tag { found: beginning(tag, REPEATED_MAX).into_owned() });
        }
        if let Some(digest) = digest.filter(|digest| !is_digest(digest)) {
            return Err(InvalidReference::Digest { found: beginning(digest, REPEATED_MAX).into_owned() });
        }
        Ok(Self { repository, tag, digest })
    }

    /// The repository in full, by which two ways to write one are compared:
    /// `docker.io/library/nginx` for `nginx`. The registry is in lower case, as host names are.
    #[must_use]
    pub fn full_repository(&self) -> String {
        match self.repository.split_once('/') {
            Some((domain, path)) if names_registry(domain) => {
                let domain = full_domain(domain);
                if domain == DEFAULT_DOMAIN && !path.contains('/') {
                    return format!("{domain}/{OFFICIAL_IMAGES}/{path}");
                }
                format!("{domain}/{path}")
            }
            Some(_) => format!("{DEFAULT_DOMAIN}/{}", self.repository),
            None => format!("{DEFAULT_DOMAIN}/{OFFICIAL_IMAGES}/{}", self.repository),
        }
    }
}

/// As it is written, such as `registry:5000/app:1.4.2@sha256:…`.
impl fmt::Display for ImageReference<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.repository)?;
        if let Some(tag) = self.tag {
            write!(formatter, ":{tag}")?;
        }
        if let Some(digest) = self.digest {
            write!(formatter, "@{digest}")?;
        }
        Ok(())
    }
}

/// A registry with the beginning of a path in it, or without: `docker.io`,
/// `registry:5000/team-a`. Ends where an element of the path does.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RepositoryPrefix(String);

impl RepositoryPrefix {
    /// Reads a prefix.
    ///
    /// # Errors
    /// A text with which no repository in full begins.
    pub fn parse(text: &str) -> Result<Self, InvalidPrefix> {
        let invalid = || InvalidPrefix::of(text);
        let (domain, path) = match text.split_once('/') {
            Some((domain, path)) => (domain, Some(path)),
            None => (text, None),
        };
        if !names_registry(domain) || ImageReference::parse(&format!("{text}/x")).is_err() {
            return Err(invalid());
        }
        let domain = full_domain(domain);
        Ok(Self(path.map_or_else(|| domain.clone(), |path| format!("{domain}/{path}"))))
    }

    /// What follows the prefix in a full repository: nothing, or `/` and more. `None` for a
    /// repository elsewhere.
    #[must_use]
    pub fn strip_from<'r>(&self, full_repository: &'r str) -> Option<&'r str> {
        full_repository.strip_prefix(&self.0).filter(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The prefix in full.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RepositoryPrefix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for RepositoryPrefix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// A text that is no [`RepositoryPrefix`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no registry: write one such as docker.io or registry:5000, with the beginning of a path or without, \
     such as docker.io/library"
)]
pub struct InvalidPrefix {
    text: String,
}

impl InvalidPrefix {
    /// What is said of a text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self { text: text.to_owned() }
    }
}

/// Whether the first element of a repository is its registry, and not part of the path.
///
/// `my_registry.com` is none by the grammar, and a path of no registry to Go's package; but runtimes
/// ask the host of that name for the image, so that it must not count as one of docker.io.
fn names_registry(first: &str) -> bool {
    first == "localhost" || first.bytes().any(|byte| matches!(byte, b'.' | b':') || byte.is_ascii_uppercase())
}

fn full_domain(domain: &str) -> String {
    let domain = domain.to_ascii_lowercase();
    if domain == FORMER_DEFAULT_DOMAIN { DEFAULT_DOMAIN.to_owned() } else { domain }
}

/// Why a text is no image reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidReference {
    /// There is nothing.
    #[error("it is empty")]
    Empty,
    /// 64 hexadecimal digits alone, which runtimes take for an image's identifier.
    #[error("64 hexadecimal digits alone are no image name")]
    Identifier,
    /// The part before tag and digest.
    #[error("{found:?} is no repository name: lower-case letters, digits, and single . _ - between them")]
    Repository {
        /// The repository as written, or its beginning.
        found: String,
    },
    /// A repository of more than 255 characters.
    #[error("the repository name has more than {PATH_LENGTH_MAX} characters")]
    TooLong,
    /// The part after the colon.
    #[error("{found:?} is no tag: at most {TAG_LENGTH_MAX} letters, digits, _ . -")]
    Tag {
        /// The tag as written, or its beginning.
        found: String,
    },
    /// The part after the at sign.
    #[error("{found:?} is no digest: sha256: and 64 lower-case hexadecimal digits")]
    Digest {
        /// The digest as written, or its beginning.
        found: String,
    },
}

fn check_repository(repository: &str) -> Result<(), InvalidReference> {
    let invalid = || InvalidReference::Repository { found: beginning(repository, REPEATED_MAX).into_owned() };
    let path = match repository.split_once('/') {
        // A first element that is written as a host is one, and may have upper case and a port.
        Some((domain, path)) if is_domain(domain) => path,
        _ => repository,
    };
    if !path.split('/').all(is_path_component) {
        return Err(invalid());
    }
    let official = OFFICIAL_IMAGES.len() + "/".len();
    // Most are too short to be looked at.
    if repository.len() + official > PATH_LENGTH_MAX && path_length(repository, official) > PATH_LENGTH_MAX {
        return Err(InvalidReference::TooLong);
    }
    Ok(())
}

/// The length of a repository's path, as it is in full: `official` longer for an official image.
fn path_length(repository: &str, official: usize) -> usize {
    match repository.split_once('/') {
        None => official + repository.len(),
        Some((DEFAULT_DOMAIN | FORMER_DEFAULT_DOMAIN, path)) if !path.contains('/') => official + path.len(),
        Some((domain, path)) if names_registry(domain) && is_domain(domain) => path.len(),
        Some(_) => repository.len(),
    }
}

fn is_domain(domain: &str) -> bool {
    let (host, port) = match domain.strip_prefix('[') {
        Some(bracketed) => match bracketed.split_once(']') {
            Some((address, rest)) if is_ipv6_text(address) => (None, rest),
            _ => return false,
        },
        None => match domain.find(':') {
            Some(colon) => (Some(&domain[..colon]), &domain[colon..]),
            None => (Some(domain), ""),
        },
    };
    let port_is_right = match port.strip_prefix(':') {
        Some(digits) => !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()),
        None => port.is_empty(),
    };
    port_is_right && host.is_none_or(|host| host.split('.').all(is_domain_component))
}

fn is_ipv6_text(address: &str) -> bool {
    !address.is_empty() && address.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':')
}

fn is_domain_component(component: &str) -> bool {
    let alphanumeric = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = component.as_bytes();
    alphanumeric(bytes.first())
        && alphanumeric(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

/// Letters and digits in lower case, with one `.`, one or two `_`, or any number of `-` between.
fn is_path_component(component: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = component.as_bytes();
    let (Some(&first), Some(&last)) = (bytes.first(), bytes.last()) else {
        return false;
    };
    alphanumeric(first)
        && alphanumeric(last)
        && component
            .split(|character: char| character.is_ascii_lowercase() || character.is_ascii_digit())
            .all(|separator| matches!(separator, "" | "." | "_" | "__") || separator.bytes().all(|byte| byte == b'-'))
}

fn is_tag(tag: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    tag.len() <= TAG_LENGTH_MAX
        && tag.bytes().next().is_some_and(word)
        && tag.bytes().all(|byte| word(byte) || byte == b'.' || byte == b'-')
}

fn is_digest(digest: &str) -> bool {
    match digest.split_once(':') {
        Some(("sha256", hex)) => is_hex(hex, 64),
        Some(("sha384", hex)) => is_hex(hex, 96),
        Some(("sha512", hex)) => is_hex(hex, 128),
        _ => false,
    }
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHA256: &str = "sha256:4f1c9a0be2d377654f1c9a0be2d377654f1c9a0be2d377654f1c9a0be2d37765";

    fn parts(text: &str) -> (&str, Option<&str>, Option<&str>) {
        let reference = ImageReference::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        (reference.repository, reference.tag, reference.digest)
    }

    #[test]
    fn splits_every_form() {
        assert_eq!(parts("nginx"), ("nginx", None, None));
        assert_eq!(parts("nginx:1.27"), ("nginx", Some("1.27"), None));
        assert_eq!(parts("registry:5000/app"), ("registry:5000/app", None, None));
        assert_eq!(parts("registry:5000/app:1"), ("registry:5000/app", Some("1"), None));
        assert_eq!(parts("10.0.0.7:5000/tool:1.2.3"), ("10.0.0.7:5000/tool", Some("1.2.3"), None));
        assert_eq!(parts("[2001:db8::10]:5000/base/tool:1.0"), ("[2001:db8::10]:5000/base/tool", Some("1.0"), None));
        assert_eq!(parts("[::1]/tool"), ("[::1]/tool", None, None));
        assert_eq!(parts("Registry.Example.com/app:LATEST"), ("Registry.Example.com/app", Some("LATEST"), None));
        assert_eq!(parts("UPPER/app:1"), ("UPPER/app", Some("1"), None));
        assert_eq!(parts("my_registry.com/app:1"), ("my_registry.com/app", Some("1"), None));
        let pinned = format!("quay.io/a/b:latest@{SHA256}");
        assert_eq!(parts(&pinned), ("quay.io/a/b", Some("latest"), Some(SHA256)));
        let sha512 = format!("a@sha512:{}", "0".repeat(128));
        assert!(parts(&sha512).2.is_some());
    }

    #[test]
    fn one_repository_has_one_full_name() {
        for (text, full) in [
            ("nginx:1", "docker.io/library/nginx"),
            ("library/nginx", "docker.io/library/nginx"),
            ("docker.io/nginx", "docker.io/library/nginx"),
            ("index.docker.io/library/nginx", "docker.io/library/nginx"),
            ("Docker.IO/acme/app", "docker.io/acme/app"),
            ("acme/app", "docker.io/acme/app"),
            ("localhost/app", "localhost/app"),
            ("registry:5000/app", "registry:5000/app"),
            ("UPPER/app:1", "upper/app"),
            ("[2001:DB8::1]:5000/a/b:1", "[2001:db8::1]:5000/a/b"),
            ("my_registry.com/app:1", "my_registry.com/app"),
        ] {
            assert_eq!(ImageReference::parse(text).map(|reference| reference.full_repository()), Ok(full.to_owned()));
        }
    }

    #[test]
    fn a_prefix_ends_with_an_element() {
        let prefix = |text: &str| RepositoryPrefix::parse(text).unwrap();
        assert_eq!(prefix("index.docker.io").strip_from("docker.io/library/nginx"), Some("/library/nginx"));
        assert_eq!(prefix("quay.io/a").strip_from("quay.io/a"), Some(""));
        assert_eq!(prefix("quay.io/a").strip_from("quay.io/ab"), None);
        assert_eq!(prefix("quay.io").strip_from("quay.io:5000/ab"), None);
        for text in
            ["", "library", "library/nginx", "quay.io/", "quay.io/A", "quay.io/a:1", "https://quay.io", "quay.io/*"]
        {
            assert!(RepositoryPrefix::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_length_is_that_of_the_full_path_without_the_registry() {
        let name = |length: usize| "a".repeat(length);
        for (text, is_right) in [
            (name(247), true),
            (name(248), false),
            (format!("docker.io/{}", name(248)), false),
            (format!("b/{}", name(253)), true),
            (format!("b/{}", name(254)), false),
            (format!("quay.io/{}", name(255)), true),
            (format!("quay.io/{}", name(256)), false),
        ] {
            assert_eq!(ImageReference::parse(&text).is_ok(), is_right, "{text}");
        }
    }

    #[test]
    fn refuses_what_a_runtime_refuses() {
        let too_long = format!("{}/b:1", "a".repeat(254));
        let long_tag = format!("a:{}", "1".repeat(129));
        let upper_hex = format!("a@{}", SHA256.to_uppercase().replace("SHA256", "sha256"));
        for text in [
            "",
            " nginx:1",
            "nginx:1 ",
            "nginx:",
            "nginx:-1",
            ":1",
            "@",
            "a@",
            "a:b:c",
            "cache@7.2.5",
            "Nginx:1",
            "quay.io/Team/app:1",
            "a//b:1",
            "/a:1",
            "a/:1",
            "a___b:1",
            "a..b:1",
            "-a:1",
            "a-:1",
            "https://quay.io/a:1",
            "reg_istry:5000/app:1",
            "[::1/app:1",
            "[::g]/app:1",
            "[]/app:1",
            "registry:/app:1",
            "registry:5000x/app:1",
            "a@sha256:abc",
            "a:1@sha256:",
            "aé:1",
            "a:é",
            "a\n:1",
            &"f".repeat(64),
            &too_long,
            &long_tag,
            &upper_hex,
        ] {
            assert!(ImageReference::parse(text).is_err(), "{text:?} was taken");
        }
    }
}
