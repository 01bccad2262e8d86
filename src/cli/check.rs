//! `podgate check`: manifests judged offline, as CI does it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::report::{self, Format, Style};
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
    #[arg(long, short, value_name = "NAME", default_value = "default")]
    namespace: String,
    /// How to report; `text` is in colour on a terminal, unless `NO_COLOR` is set
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,
    /// Print what would be stored, as YAML, and the report on standard error
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
    for path in &arguments.paths {
        check(&mut found, &checker, path);
    }
    if let Err(error) = write(arguments, &found) {
        return fail(&format_args!("cannot write the report: {error}"));
    }
    if !found.unreadable.is_empty() {
        return Exit::Failure.into();
    }
    if found.count(Severity::Denied) > 0 { Exit::Violations.into() } else { Exit::Clean.into() }
}

fn check(report: &mut Report, checker: &Checker<'_>, path: &Path) {
    let paths = match files::below(path) {
        Ok(paths) => paths,
        Err(error) => return report.add_unreadable(&path.display().to_string(), error.to_string()),
    };
    for path in paths {
        let name = path.display().to_string();
        match files::read(&path) {
            Ok(bytes) => report.add_file(checker, &name, &bytes),
            Err(error) => report.add_unreadable(&name, error.to_string()),
        }
    }
}

fn write(arguments: &Arguments, found: &Report) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    if arguments.mutated {
        stdout.write_all(report::mutated(found)?.as_bytes())?;
        return std::io::stderr().write_all(report::text(found, Style::of(&std::io::stderr())).as_bytes());
    }
    let style = Style::of(&stdout);
    stdout.write_all(arguments.output.write(found, style)?.as_bytes())
}
