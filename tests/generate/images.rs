//! Images, and configurations of the mutation `images`, from few names, so that they often meet.

use std::fmt::Write as _;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

const DIGEST: &str = "sha256:4f1c9a0be2d377654f1c9a0be2d377654f1c9a0be2d377654f1c9a0be2d37765";

fn registry() -> impl Strategy<Value = &'static str> {
    select(&["docker.io", "index.docker.io", "r.io", "R.io", "localhost", "UPPER", "r:5000", "[::1]:5000"][..])
}

fn path(elements: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    vec(select(&["a", "b", "library"][..]), elements).prop_map(|elements| elements.join("/"))
}

fn prefix() -> impl Strategy<Value = String> {
    (registry(), path(0..3)).prop_map(|(registry, path)| format!("{registry}/{path}").trim_end_matches('/').to_owned())
}

fn repository() -> impl Strategy<Value = String> {
    (option::of(registry()), path(1..5))
        .prop_map(|(registry, path)| registry.map_or_else(|| path.clone(), |registry| format!("{registry}/{path}")))
}

/// An image in any form.
pub(crate) fn image() -> impl Strategy<Value = String> {
    let tag = select(&["", ":1", ":latest", ":stable"][..]);
    (repository(), tag, prop::bool::weighted(0.2)).prop_map(|(repository, tag, has_digest)| {
        let digest = if has_digest { format!("@{DIGEST}") } else { String::new() };
        format!("{repository}{tag}{digest}")
    })
}

/// A configuration of `images` that may contradict itself, with an `imageTag` that denies nothing.
pub(crate) fn configuration_of_images() -> impl Strategy<Value = String> {
    let mirrors = vec((prefix(), prefix()), 0..4);
    let pins = vec((repository(), select(&["1", "2", "stable", DIGEST][..])), 0..3);
    let forbidden = select(&["[]", "[latest]", "[latest, stable]"][..]);
    (mirrors, pins, forbidden).prop_map(|(mirrors, pins, forbidden)| {
        let mut text = format!("validations: {{ imageTag: {{ action: warn, forbidden: {forbidden} }} }}\n");
        text.push_str("mutations:\n  images:\n    mirrors:\n");
        for (source, target) in mirrors {
            writeln!(text, "      \"{source}\": \"{target}\"").expect("writing to a String does not fail");
        }
        text.push_str("    pins:\n");
        for (repository, version) in pins {
            writeln!(text, "      \"{repository}\": \"{version}\"").expect("writing to a String does not fail");
        }
        text
    })
}
