//! `podgate config`: the configuration file, without a server.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::{Exit, fail, say, terminal};
use crate::config::{self, ConfigError};
use crate::policy::Policies;

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
        /// The file, or - for standard input
        file: PathBuf,
    },
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let output = match &arguments.command {
        Command::Default => config::DEFAULT.to_owned(),
        Command::Schema => format!("{:#}\n", config::schema()),
        Command::Check { file } => match load(file) {
            Ok(policies) => {
                for advice in policies.advice(super::today()) {
                    say(&format!("warning: {}: {advice}", file.display()));
                }
                format!("{}: this configuration is right\n", file.display())
            }
            Err(error) => return fail(&error),
        },
    };
    match terminal::print(output.as_bytes()) {
        Ok(()) => Exit::Clean.into(),
        Err(error) => fail(&format_args!("cannot write: {error}")),
    }
}

fn load(file: &Path) -> Result<Policies, ConfigError> {
    if file.as_os_str() == "-" { config::read(file, std::io::stdin().lock()) } else { config::load(file) }
}
