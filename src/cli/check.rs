//! `podgate check`: manifests judged offline, as CI does it.

use std::collections::HashSet;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::report::{self, Format};
use super::terminal::{Style, unless_closed};
use super::{Exit, fail, files};
use crate::check::{Checker, Report, Severity};
use crate::config;
use crate::policy::Policies;

/// Check manifests offline, as a cluster with podgate would judge them.
///
/// Reads YAML and JSON with any number of documents and Lists, and judges pods and the pod
/// templates of all workloads, from Deployments to Jobs. Other kinds are skipped. A template
/// counts as denied when its pods would be, whatever the configuration's workloads says, unless
/// that is off. Nobody in particular creates the objects, so that exclusions by namespace, image
/// and container apply, and those by user and group do not.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  podgate check deploy/                              every *.yaml, *.yml and *.json below it
  helm template my-chart | podgate check -           what a chart is rendered to
  kustomize build overlays/prod | podgate check --namespace prod -
  podgate check --config podgate.yaml -o sarif k8s/ > podgate.sarif
  podgate check --mutated pod.yaml                   the pod as it would be stored

Exit codes: 0 clean or warnings only, 1 something would be denied, 2 usage or unreadable input,
be there denials or not.")]
pub(super) struct Arguments {
    /// The configuration file; the default policy without one
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The namespace of objects that name none
    #[arg(long, short, value_name = "NAME", default_value = "default", value_parser = namespace)]
    namespace: String,
    // The help shows this as it is.
    #[expect(clippy::doc_markdown, reason = "the help shows backticks as they are")]
    /// How to report; text is in colour on a terminal, unless NO_COLOR is set or TERM is dumb
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,
    /// Print what would be stored, as YAML, and the report on standard error: pods with what podgate
    /// sets, workloads as written, for it is their pods that a cluster mutates
    #[arg(long, conflicts_with = "output")]
    mutated: bool,
    /// Files, directories with *.yaml, *.yml and *.json in or below them, or - for standard input;
    /// what begins with a dot is left out of directories
    #[arg(value_name = "FILE|DIR|-", required = true)]
    paths: Vec<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let policies = match arguments.config.as_deref().map_or_else(|| Ok(Policies::default()), config::load) {
        Ok(policies) => policies,
        Err(error) => return fail(&error),
    };
    let checker = Checker {
        policies: &policies,
        namespace: &arguments.namespace,
        today: super::today(),
        keeps_stored: arguments.mutated,
    };
    let mut found = Report::default();
    let mut known = HashSet::new();
    for path in &arguments.paths {
        check(&mut found, &checker, path, &mut known);
    }
    if found.is_empty() {
        add_nothing(&mut found, &arguments.paths);
    }
    if let Err(error) = unless_closed(write(arguments, &found)) {
        return fail(&format_args!("cannot write the report: {error}"));
    }
    if !found.unreadable.is_empty() {
        return Exit::Failure.into();
    }
    if found.count(Severity::Denied) > 0 { Exit::Violations.into() } else { Exit::Clean.into() }
}

/// The name of a namespace, an RFC 1123 label.
fn namespace(text: &str) -> Result<String, String> {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if (1..=63).contains(&text.len()) && text.bytes().all(is_inner) && !text.starts_with('-') && !text.ends_with('-') {
        return Ok(text.to_owned());
    }
    Err("a namespace is at most 63 lower-case letters, digits and -, with no - at its ends".to_owned())
}

/// Judges what a path stands for, but for files that are `known`, by whatever path.
fn check(report: &mut Report, checker: &Checker<'_>, path: &Path, known: &mut HashSet<PathBuf>) {
    let paths = match files::below(path) {
        Ok(paths) => paths,
        Err(error) => return report.add_unreadable(&path.display().to_string(), error.to_string()),
    };
    for path in paths {
        let plain = path.strip_prefix(".").ok().filter(|plain| plain.as_os_str() != "-").unwrap_or(&path);
        if !known.insert(plain.to_owned()) {
            continue;
        }
        let name = plain.display().to_string();
        match files::read(&path) {
            Ok(bytes) => report.add_file(checker, &name, &bytes),
            Err(error) => report.add_unreadable(&name, error.to_string()),
        }
    }
}

/// Where there was nothing to judge, something is wrong before podgate: it is no green light.
fn add_nothing(report: &mut Report, paths: &[PathBuf]) {
    let Some(first) = paths.first() else { return };
    let place = match paths {
        [only] if only.as_os_str() == "-" => "on standard input",
        [only] if !only.is_dir() => "in this file",
        [_] => "in the files of this directory",
        _ => "in any of the files",
    };
    let message = format!(
        "there is no object {place}, so that nothing was judged: is what should have written it empty, such as \
         a chart whose values leave everything out?"
    );
    report.add_fault(&first.display().to_string(), message);
}

fn write(arguments: &Arguments, found: &Report) -> std::io::Result<()> {
    let stdout = std::io::stdout().lock();
    let style = Style::of(&stdout);
    let mut output = BufWriter::new(stdout);
    if !arguments.mutated {
        arguments.output.write(found, style, &mut output)?;
        return output.flush();
    }
    report::mutated(found, &mut output)?;
    output.flush()?;
    let stderr = std::io::stderr().lock();
    let style = Style::of(&stderr);
    let mut output = BufWriter::new(stderr);
    report::text(found, style, &mut output)?;
    output.flush()
}
