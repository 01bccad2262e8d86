//! What an answer costs as what it has to look at grows: twice as much may cost twice as much, never four times;
//! and a configuration ten times as long as good as nothing. `make bench-growth`.

#![allow(clippy::expect_used, reason = "a benchmark that cannot go on has failed")]

mod reviews;

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use podgate::admission::{self, Webhook};
use podgate::config;
use podgate::policy::Policies;
use serde_json::{Value, json};

/// How long each figure is measured, at least.
const MEASURED: Duration = Duration::from_millis(300);

fn main() {
    println!("| what grows | how much | /mutate µs | for each ns | /validate µs | for each ns |");
    println!("|---|---|---|---|---|---|");
    for kib in [1, 16, 256, 1024, 6 * 1024] {
        row("KiB of one annotation", kib, &reviews::policies(), &annotated(kib << 10));
    }
    for kib in [1, 16, 256, 1024, 6 * 1024] {
        row("KiB of environment variables", kib, &reviews::policies(), &reviews::with_environment(kib << 10));
    }
    for count in [1, 10, 100, 500] {
        row("containers", count, &reviews::policies(), &reviews::with_containers(count));
    }
    for count in [1, 10, 100, 500] {
        row("hostPath volumes, each denied", count, &reviews::policies(), &with_volumes(count));
    }
    for count in [1, 10, 100, 500, 5000] {
        row("labels", count, &reviews::policies(), &labelled(count));
    }
    for (what, configuration) in CONFIGURATIONS {
        for count in [1, 10, 100, 1000] {
            let policies = config::parse(&configuration(count)).expect("a configuration");
            row(what, count, &policies, &reviews::with_containers(5));
        }
    }
    println!("\nThe least of several runs. Each: the whole divided by the number.");
}

/// A configuration that grows, by what is in it.
type Configuration = (&'static str, fn(usize) -> String);

const CONFIGURATIONS: [Configuration; 6] = [
    ("excluded namespaces, exact", |count| list("exclude: {namespaces: [", "]}", count, |n| format!("team-{n}"))),
    ("excluded namespaces, globs", |count| list("exclude: {namespaces: [", "]}", count, |n| format!("team-{n}-*"))),
    ("excluded images, exact", |count| {
        list("validations: {imageTag: {exclude: {images: [", "]}}}", count, |n| format!("registry.example.com/a{n}"))
    }),
    ("excluded images, globs", |count| {
        list("validations: {imageTag: {exclude: {images: [", "]}}}", count, |n| format!("registry.example.com/a{n}/*"))
    }),
    ("pins", |count| {
        list("mutations: {images: {pins: {", "}}}", count, |n| format!("registry.example.com/a{n}: \"1.{n}\""))
    }),
    ("mirrors", |count| {
        list("mutations: {images: {mirrors: {", "}}}", count, |n| {
            format!("registry{n}.example.com: mirror.example.com/r{n}")
        })
    }),
];

fn list(before: &str, after: &str, count: usize, item: impl Fn(usize) -> String) -> String {
    let items: Vec<String> = (0..count).map(item).collect();
    let mut text = before.to_owned();
    write!(text, "{}{after}", items.join(", ")).expect("a string takes everything");
    text
}

fn annotated(bytes: usize) -> Value {
    let mut review = reviews::small();
    review["request"]["object"]["metadata"]["annotations"] = json!({"example.com/note": "n".repeat(bytes)});
    review
}

fn labelled(count: usize) -> Value {
    let mut review = reviews::small();
    let labels = (0..count).map(|index| (format!("example.com/label-{index}"), Value::from("yes")));
    review["request"]["object"]["metadata"]["labels"] = labels.collect::<serde_json::Map<_, _>>().into();
    review
}

fn with_volumes(count: usize) -> Value {
    let mut review = reviews::small();
    let volume = |index| json!({"name": format!("volume-{index}"), "hostPath": {"path": format!("/var/lib/{index}")}});
    review["request"]["object"]["spec"]["volumes"] = (0..count).map(volume).collect();
    review
}

fn row(what: &str, count: usize, policies: &Policies, review: &Value) {
    let body = reviews::body(review);
    let validated = reviews::body(&reviews::hardened(review));
    let mutate = nanoseconds(policies, Webhook::Mutate, &body);
    let validate = nanoseconds(policies, Webhook::Validate, &validated);
    let divisor = f64::from(u32::try_from(count).expect("a small number"));
    println!(
        "| {what} | {count} | {:.1} | {:.0} | {:.1} | {:.0} |",
        mutate / 1e3,
        mutate / divisor,
        validate / 1e3,
        validate / divisor
    );
}

/// The least time of one answer.
fn nanoseconds(policies: &Policies, webhook: Webhook, body: &[u8]) -> f64 {
    let today = reviews::today();
    let started = Instant::now();
    let mut least = Duration::MAX;
    while started.elapsed() < MEASURED {
        let one = Instant::now();
        black_box(admission::answer(policies, webhook, black_box(body), today));
        least = least.min(one.elapsed());
    }
    least.as_secs_f64() * 1e9
}
