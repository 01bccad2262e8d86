//! The command line: one file a command.

mod certificate;
mod certs;
mod check;
mod clients;
mod completions;
mod config;
mod duration;
mod files;
mod follow;
mod logging;
mod quota;
mod report;
mod review;
mod serve;
mod terminal;

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A Kubernetes admission webhook that makes pods safe, or says what to change.
#[derive(Debug, Parser)]
#[command(name = "podgate", version, about, max_term_width = 100)]
#[command(after_help = "Examples:
  podgate check deploy/                  judge manifests as a cluster with podgate would
  podgate config default > podgate.yaml  the default policy, to be changed
  podgate serve --config podgate.yaml    the webhooks, on https://0.0.0.0:8443
  podgate COMMAND --help                 more of each command

Exit codes: 0 clean, 1 violations found, 2 usage or unreadable input.")]
pub struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(Box<serve::Arguments>),
    Check(check::Arguments),
    Certs(certs::Arguments),
    Review(review::Arguments),
    Config(config::Arguments),
    Completions(completions::Arguments),
}

impl CommandLine {
    /// Runs the command.
    #[must_use]
    pub fn run(self) -> ExitCode {
        match self.command {
            Command::Serve(arguments) => serve::run(&arguments),
            Command::Check(arguments) => check::run(&arguments),
            Command::Certs(arguments) => certs::run(&arguments),
            Command::Review(arguments) => review::run(&arguments),
            Command::Config(arguments) => config::run(&arguments),
            Command::Completions(arguments) => completions::run(&arguments),
        }
    }
}

/// How a command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exit {
    /// Nothing to complain of.
    Clean,
    /// Something violates a policy.
    Violations,
    /// The command could not do its work.
    Failure,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Clean => 0,
            Exit::Violations => 1,
            Exit::Failure => 2,
        })
    }
}

/// The day in UTC, by which exclusions expire.
fn today() -> time::Date {
    time::OffsetDateTime::now_utc().date()
}

/// Says on standard error why a command could not do its work.
fn fail(error: &dyn std::fmt::Display) -> ExitCode {
    say(&error.to_string());
    Exit::Failure.into()
}

/// Says something on standard error. Of what is quoted from files, only what can be seen.
fn say(text: &str) {
    // There is nobody left to tell that nobody listens.
    let _ = writeln!(std::io::stderr(), "podgate: {}", terminal::printable_lines(text));
}
