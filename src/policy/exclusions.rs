//! Lists of names that are excluded, each for good or until a day.

use std::collections::HashMap;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use time::{Date, Month};

use super::namespace_quota::NamespacePattern;
use super::patterns::glob_matches;
use crate::pod::{ImageReference, RepositoryPrefix};

/// Names and globs, in which `*` stands for any number of characters. The cost of a look-up does
/// not grow with the number of exact names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exclusions {
    exact: HashMap<String, Term>,
    globs: Vec<(String, Term)>,
}

/// How long an exclusion counts, and why it is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Term {
    pub(super) reason: Option<String>,
    /// The last day on which it counts, in UTC.
    pub(super) until: Option<Date>,
}

impl Term {
    pub(super) fn has_expired(&self, today: Date) -> bool {
        self.until.is_some_and(|until| until < today)
    }
}

impl Exclusions {
    /// Whether a name is excluded today.
    #[must_use]
    pub fn cover(&self, name: &str, today: Date) -> bool {
        self.exact.get(name).is_some_and(|term| !term.has_expired(today))
            || self.globs.iter().any(|(glob, term)| !term.has_expired(today) && glob_matches(glob, name))
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.globs.is_empty()
    }

    /// Each with its term.
    pub(super) fn each(&self) -> impl Iterator<Item = (&str, &Term)> {
        let globs = self.globs.iter().map(|(glob, term)| (&**glob, term));
        self.exact.iter().map(|(name, term)| (&**name, term)).chain(globs)
    }

    fn add(&mut self, name: String, term: Term) {
        if name.contains('*') {
            self.globs.push((name, term));
            return;
        }
        // Of a name that comes twice, the term that lasts longer counts.
        let lasts = |term: &Term| term.until.unwrap_or(Date::MAX);
        if self.exact.get(&name).is_none_or(|known| lasts(known) < lasts(&term)) {
            self.exact.insert(name, term);
        }
    }
}

impl<S: Into<String>> FromIterator<S> for Exclusions {
    fn from_iter<I: IntoIterator<Item = S>>(names: I) -> Self {
        let mut exclusions = Self::default();
        for name in names {
            exclusions.add(name.into(), Term::default());
        }
        exclusions
    }
}

impl<'de> Deserialize<'de> for Exclusions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut exclusions = Self::default();
        for NamedEntry(Entry { name, term }) in
            Option::<Vec<NamedEntry>>::deserialize(deserializer)?.unwrap_or_default()
        {
            exclusions.add(name, term);
        }
        Ok(exclusions)
    }
}

/// Namespaces that are excluded, each of which can be one.
pub(super) fn of_namespaces<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Exclusions, D::Error> {
    let mut exclusions = Exclusions::default();
    for NamespaceEntry(Entry { name, term }) in
        Option::<Vec<NamespaceEntry>>::deserialize(deserializer)?.unwrap_or_default()
    {
        exclusions.add(name, term);
    }
    Ok(exclusions)
}

/// A name that nobody and nothing has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("\"\" matches nothing: write a name, or a glob with *")]
pub struct EmptyName;

/// Images that are excluded: repositories, whole references, and globs, all compared in full.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageExclusions(Exclusions);

/// A glob that no image in full could match.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{glob:?} matches no image, for images are compared in full: write it with its registry, such as {instead}")]
pub struct GlobWithoutRegistry {
    glob: String,
    instead: String,
}

impl GlobWithoutRegistry {
    fn new(glob: &str) -> Self {
        let before = glob.split('*').next().unwrap_or_default();
        let instead = if glob.contains('/') {
            format!("docker.io/{glob}")
        } else if RepositoryPrefix::parse(before).is_ok() {
            // It looks like a registry: the rest of it, if any, is not known.
            format!("{}/*", before.strip_prefix("index.").filter(|rest| *rest == "docker.io").unwrap_or(before))
        } else {
            format!("docker.io/library/{glob}")
        };
        Self { glob: glob.to_owned(), instead }
    }
}

impl ImageExclusions {
    /// Whether an image is excluded today.
    #[must_use]
    pub fn cover(&self, image: &str, today: Date) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let Ok(reference) = ImageReference::parse(image) else { return false };
        let repository = reference.full_repository();
        self.0.cover(&repository, today) || self.0.cover(&in_full(&reference, &repository), today)
    }

    /// The list itself.
    pub(super) const fn exclusions(&self) -> &Exclusions {
        &self.0
    }
}

fn in_full(reference: &ImageReference<'_>, full_repository: &str) -> String {
    ImageReference { repository: full_repository, ..*reference }.to_string()
}

/// An image or a glob as it is compared.
fn image_pattern<E: Error>(name: &str) -> Result<String, E> {
    if !name.contains('*') {
        let reference = ImageReference::parse(name).map_err(E::custom)?;
        return Ok(in_full(&reference, &reference.full_repository()));
    }
    let can_match = match name.split_once('/') {
        Some((registry, _)) => registry.contains('*') || RepositoryPrefix::parse(registry).is_ok(),
        None => name.starts_with('*'),
    };
    if can_match {
        return Ok(name.to_owned());
    }
    Err(E::custom(GlobWithoutRegistry::new(name)))
}

impl<'de> Deserialize<'de> for ImageExclusions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut exclusions = Exclusions::default();
        for ImageEntry(Entry { name, term }) in
            Option::<Vec<ImageEntry>>::deserialize(deserializer)?.unwrap_or_default()
        {
            exclusions.add(name, term);
        }
        Ok(Self(exclusions))
    }
}

/// An entry of a list: a name, or a name with a reason and a day.
#[derive(Debug)]
struct Entry {
    name: String,
    term: Term,
}

/// An entry that names something.
struct NamedEntry(Entry);

impl<'de> Deserialize<'de> for NamedEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let entry = Entry::deserialize(deserializer)?;
        if entry.name.is_empty() { Err(D::Error::custom(EmptyName)) } else { Ok(Self(entry)) }
    }
}

/// An entry whose name can be that of a namespace.
struct NamespaceEntry(Entry);

impl<'de> Deserialize<'de> for NamespaceEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Entry { name, term } = Entry::deserialize(deserializer)?;
        let NamespacePattern(name) = NamespacePattern::new(name).map_err(D::Error::custom)?;
        Ok(Self(Entry { name, term }))
    }
}

/// An entry whose name is an image, read in full.
struct ImageEntry(Entry);

impl<'de> Deserialize<'de> for ImageEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Entry { name, term } = Entry::deserialize(deserializer)?;
        Ok(Self(Entry { name: image_pattern(&name)?, term }))
    }
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NamedWithTerm {
    /// What is excluded.
    name: String,
    /// Why.
    #[serde(default)]
    reason: Option<String>,
    /// The last day on which it counts, in UTC, such as 2027-01-31.
    #[serde(default, deserialize_with = "date")]
    #[schemars(with = "Option<super::schema::Day>")]
    until: Option<Date>,
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EntryVisitor)
    }
}

struct EntryVisitor;

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = Entry;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a name, in quotes if it looks like something else, or a map of name, reason and until")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Entry, E> {
        Ok(Entry { name: name.to_owned(), term: Term::default() })
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Entry, E> {
        Err(E::custom("here belongs a name, and this is none without quotes: quote it"))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Entry, A::Error> {
        let NamedWithTerm { name, reason, until } = Deserialize::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Entry { name, term: Term { reason, until } })
    }
}

/// A day as RFC 3339 writes it (section 5.6, `full-date`).
fn date<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Date>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    let date = parse_date(&text).ok_or_else(|| D::Error::custom(NotADate { text }))?;
    Ok(Some(date))
}

/// A text that is no day.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no date: write one such as 2027-01-31")]
pub struct NotADate {
    text: String,
}

fn parse_date(text: &str) -> Option<Date> {
    let is_written_so = text.len() == 10
        && text
            .bytes()
            .enumerate()
            .all(|(at, byte)| if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() });
    if !is_written_so {
        return None;
    }
    let month = text[5..7].parse::<u8>().ok().and_then(|month| Month::try_from(month).ok())?;
    Date::from_calendar_date(text[..4].parse().ok()?, month, text[8..].parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Date {
        parse_date(text).unwrap()
    }

    fn read(json: &str) -> Exclusions {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn names_and_globs_count_until_their_day_is_over() {
        let exclusions = read(
            r#"["a", {"name": "b", "reason": "moving", "until": "2026-12-31"}, {"name": "c-*", "until": "2026-12-31"}]"#,
        );
        for (name, last_day, day_after) in
            [("a", true, true), ("b", true, false), ("c-1", true, false), ("d", false, false)]
        {
            assert_eq!(exclusions.cover(name, day("2026-12-31")), last_day, "{name}");
            assert_eq!(exclusions.cover(name, day("2027-01-01")), day_after, "{name}");
        }
    }

    #[test]
    fn what_can_match_nothing_is_refused() {
        let said = |list: &str, name: &str| {
            let configuration = format!("exclude: {{ {list}: [a, {name:?}] }}");
            crate::config::parse(&configuration).err().map(|fault| fault.to_string()).unwrap_or_default()
        };
        for name in ["Team", "team-?", "", "a.b"] {
            assert!(said("namespaces", name).contains(&format!("{name:?} matches no namespace")), "{name}");
        }
        for list in ["users", "groups"] {
            assert!(said(list, "").contains("\"\" matches nothing"), "{list}");
        }
        for (list, name) in [("namespaces", "team-*"), ("users", "Team A?"), ("groups", "*")] {
            assert_eq!(said(list, name), "", "{list}");
        }
    }

    #[test]
    fn of_a_name_that_comes_twice_the_longer_term_counts() {
        for list in [r#"["a", {"name": "a", "until": "2026-01-01"}]"#, r#"[{"name": "a", "until": "2026-01-01"}, "a"]"#]
        {
            assert!(read(list).cover("a", day("2027-01-01")));
        }
    }

    #[test]
    fn dates_are_those_of_rfc_3339() {
        for text in
            ["2026-1-1", "2026-13-01", "2026-02-30", "26-01-01", "2026-01-01T00:00:00Z", "tomorrow", "", "２026-1-1"]
        {
            assert_eq!(parse_date(text), None, "{text}");
        }
        assert!(parse_date("2028-02-29").is_some());
    }

    #[test]
    fn images_are_compared_in_full() {
        let read = |json: &str| serde_json::from_str::<ImageExclusions>(json).unwrap();
        let today = day("2026-01-01");
        let images = read(r#"["nginx", "quay.io/a/b:1", "registry:5000/team-*", "*/legacy/*"]"#);
        for image in [
            "nginx:1",
            "docker.io/library/nginx",
            "index.docker.io/nginx:latest",
            "quay.io/a/b:1",
            "registry:5000/team-a/x:2",
            "ghcr.io/legacy/x",
        ] {
            assert!(images.cover(image, today), "{image}");
        }
        for image in ["quay.io/nginx", "acme/nginx", "quay.io/a/b:2", "quay.io/a/b", "registry/team-a", "", "NGINX"] {
            assert!(!images.cover(image, today), "{image}");
        }
        for (glob, instead) in [
            ("acme/*", "such as docker.io/acme/*"),
            ("nginx*", "such as docker.io/library/nginx*"),
            ("nginx:1.*", "such as docker.io/library/nginx:1.*"),
            ("quay.io*", "such as quay.io/*"),
            ("index.docker.io*", "such as docker.io/*"),
            ("registry:5000*", "such as registry:5000/*"),
        ] {
            let said = image_pattern::<serde_json::Error>(glob).unwrap_err().to_string();
            assert!(said.ends_with(instead), "{said}");
        }
        for wrong in [r#"["nginx*"]"#, r#"["library/*"]"#, r#"["Nginx"]"#, r#"[""]"#] {
            assert!(serde_json::from_str::<ImageExclusions>(wrong).is_err(), "{wrong}");
        }
    }
}
