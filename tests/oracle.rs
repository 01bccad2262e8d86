//! Image references and quantities, as podgate reads them and as Go's packages do: `make oracle`.

#![cfg(feature = "oracle")]
#![allow(clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use podgate::pod::{ImageReference, Quantity};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Inputs of each kind.
const COUNT: usize = 120_000;

/// Differences shown before the test gives up.
const SHOWN: usize = 30;

/// The same inputs in every run.
fn generate(strategy: impl Strategy<Value = String>) -> Vec<String> {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    (0..COUNT).map(|_| strategy.new_tree(&mut runner).expect("there is always another").current()).collect()
}

/// What the Go program answers to each.
fn ask(kind: &str, inputs: &[String]) -> Vec<String> {
    let program = std::env::var("ORACLE").expect("ORACLE names the Go program: make oracle");
    let mut child =
        Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the Go program runs");
    let mut stdin = child.stdin.take().expect("it is piped");
    let line = |input: &String| [kind, " ", &serde_json::Value::from(input.as_str()).to_string(), "\n"].concat();
    let lines: String = inputs.iter().map(line).collect();
    let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()).expect("it reads"));
    let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
    let answers: Vec<String> = stdout.lines().map(|line| line.expect("it writes text")).collect();
    writer.join().expect("the writer ends");
    assert!(child.wait().expect("it ends").success());
    assert_eq!(answers.len(), inputs.len());
    answers
}

/// What exceeds 128 bits is the largest amount to podgate, which compares the same.
fn saturated(answer: String) -> String {
    let is_integer = answer.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
    match answer.parse::<i128>() {
        Err(_) if is_integer && answer.starts_with('-') => (-i128::MAX).to_string(),
        Err(_) if is_integer => i128::MAX.to_string(),
        _ => answer,
    }
}

/// Whether a text names docker.io with upper case in it, which Go takes for another registry and
/// podgate, as DNS does, for the same.
fn is_docker_in_another_case(text: &str) -> bool {
    let domain = text.split('/').next().unwrap_or_default();
    let lower = domain.to_ascii_lowercase();
    lower != domain && ["docker.io", "index.docker.io"].contains(&&*lower)
}

/// Asks both, and shows where they differ.
fn compare(kind: &str, inputs: &[String], ours: impl Fn(&str) -> Option<String>) {
    let answers: Vec<String> = ask(kind, inputs).into_iter().map(saturated).collect();
    let read = answers.iter().filter(|answer| *answer != "error").count();
    println!("{kind}: {} inputs, of which Go reads {read}", inputs.len());
    assert!((inputs.len() / 5..inputs.len() * 4 / 5).contains(&read), "the inputs try too little: {read}");
    let differ: Vec<String> = inputs
        .iter()
        .zip(&answers)
        .filter_map(|(input, go)| {
            let ours = ours(input)?;
            (ours != *go).then(|| format!("{input:?}: podgate {ours:?}, Go {go:?}"))
        })
        .collect();
    let shown = differ.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("\n");
    assert!(differ.is_empty(), "{} differ:\n{shown}", differ.len());
}

/// Words that references are made of, right ones and nearly right ones.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "[a-z0-9]{1,6}",
        3 => "[a-z0-9]{1,3}[._-]{1,2}[a-z0-9]{1,3}",
        1 => "[a-zA-Z0-9._-]{1,6}",
        1 => prop::sample::select(vec!["library", "latest", "docker", "index", "LATEST", "a__b", "a--b", "é", ""])
            .prop_map(str::to_owned),
    ]
}

fn domain() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-zA-Z0-9]{1,4}(-[a-z0-9]{1,2})?\\.[a-z]{2,3}",
        2 => "[a-zA-Z0-9-]{1,5}:[0-9]{1,5}",
        1 => "[a-zA-Z0-9._-]{1,6}(:[0-9a]{0,3})?",
        1 => prop::sample::select(vec![
            "docker.io", "index.docker.io", "localhost", "localhost:5000", "Docker.IO", "UPPER", "LOCALHOST", "10.0.0.7",
            "quay.io.", ".io", "a..b",
        ]).prop_map(str::to_owned),
        1 => "\\[[0-9a-fA-F:g.]{0,8}\\](:[0-9]{1,4})?",
    ]
}

fn digest() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "[0-9a-f]{2}".prop_map(|two| format!("sha256:{}", two.repeat(32))),
        1 => "[0-9a-f]{2}".prop_map(|two| format!("sha512:{}", two.repeat(64))),
        1 => "[0-9a-f]{2}".prop_map(|two| format!("sha384:{}", two.repeat(48))),
        1 => "(sha256|sha512|sha384|md5|sha1|SHA256|sha256\\+b64|blake3)[:+][0-9a-fA-F]{30,66}",
        1 => "[a-z0-9:]{0,8}",
    ]
}

fn image() -> impl Strategy<Value = String> {
    let path = prop_oneof![
        12 => prop::collection::vec(word(), 1..4).prop_map(|words| words.join("/")),
        1 => (240..260_usize).prop_map(|length| "a".repeat(length)),
        1 => (100..130_usize, 120..140_usize).prop_map(|(one, two)| format!("{}/{}", "a".repeat(one), "b".repeat(two))),
        1 => "[0-9a-f]{63,65}",
    ];
    let tag = prop_oneof![8 => "[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,8}", 1 => (126..131_usize).prop_map(|length| "1".repeat(length)), 1 => "[a-z.:@é -]{0,4}"];
    let written = (prop::option::of(domain()), path, prop::option::of(tag), prop::option::weighted(0.3, digest()))
        .prop_map(|(domain, path, tag, digest)| {
            let domain = domain.map(|domain| domain + "/").unwrap_or_default();
            let tag = tag.map(|tag| format!(":{tag}")).unwrap_or_default();
            let digest = digest.map(|digest| format!("@{digest}")).unwrap_or_default();
            format!("{domain}{path}{tag}{digest}")
        });
    damaged(written, "[a-zA-Z0-9/:@._ \\-\\[\\]\n\u{e9}]")
}

fn quantity() -> impl Strategy<Value = String> {
    let digits =
        || prop_oneof![8 => "[0-9]{0,4}", 2 => "[0-9]{15,22}", 1 => "0{0,5}[1-9]?0{0,20}", 1 => "[0-9]{36,60}"];
    let suffix = prop_oneof![
        8 => prop::sample::select(vec!["n", "u", "m", "", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"])
            .prop_map(str::to_owned),
        // Far beyond these, Go computes for ever.
        3 => "[eE][+-]?[0-3]?[0-9]",
        1 => "[eEinumkKMGTP]{1,3}[+-]?[0-9]{0,2}",
        1 => "[eE][+-]?99999999999999999999",
    ];
    let written =
        ("[+-]?", digits(), prop::option::of(digits()), suffix).prop_map(|(sign, whole, fraction, suffix)| {
            let fraction = fraction.map(|fraction| format!(".{fraction}")).unwrap_or_default();
            format!("{sign}{whole}{fraction}{suffix}")
        });
    damaged(written, "[.+ iKMmB_x,\n\u{661}-]")
}

/// Some of them with one character more at one place.
fn damaged(strategy: impl Strategy<Value = String>, with: &'static str) -> impl Strategy<Value = String> {
    (strategy, prop::option::weighted(0.15, (with, any::<prop::sample::Index>()))).prop_map(|(mut text, damage)| {
        if let Some((with, at)) = damage {
            let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            text.insert_str(places[at.index(places.len())], &with);
        }
        text
    })
}

#[test]
fn image_references_are_read_as_distribution_reads_them() {
    compare("image", &generate(image()), |text| match ImageReference::parse(text) {
        // Hosts in brackets are read, whatever Go's package makes of them.
        Ok(_) if text.starts_with('[') || is_docker_in_another_case(text) => None,
        Err(_) => Some("error".to_owned()),
        Ok(reference) => {
            let [tag, digest] = [reference.tag, reference.digest].map(Option::unwrap_or_default);
            Some(format!("{} {tag} {digest}", reference.full_repository()))
        }
    });
}

#[test]
fn quantities_are_the_amounts_that_the_api_server_reads() {
    let inputs = generate(quantity());
    compare("quantity", &inputs, |text| {
        Some(Quantity::parse(text).map_or_else(|_| "error".to_owned(), |quantity| quantity.nano().to_string()))
    });
}
