//! `podgate config`: the configuration file, without a server.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::{Exit, fail};
use crate::config;

/// Print or check a configuration file.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  podgate config default > podgate.yaml
  podgate config check podgate.yaml
  podgate config schema > podgate.schema.json")]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the default policy, with a comment on every key
    Default,
    /// Print the JSON Schema of the configuration file, for editors and CI
    Schema,
    /// Check a configuration file; errors name line and column, warnings what is hardly meant
    Check {
        /// The file
        file: PathBuf,
    },
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let output = match &arguments.command {
        Command::Default => config::DEFAULT.to_owned(),
        Command::Schema => format!("{:#}\n", config::schema()),
        Command::Check { file } => match config::load(file) {
            Ok(policies) => {
                for advice in policies.advice(super::today()) {
                    eprintln!("podgate: warning: {}: {advice}", file.display());
                }
                format!("{}: this configuration is right\n", file.display())
            }
            Err(error) => return fail(&error),
        },
    };
    match std::io::stdout().write_all(output.as_bytes()) {
        Ok(()) => Exit::Clean.into(),
        Err(error) => fail(&format_args!("cannot write: {error}")),
    }
}
