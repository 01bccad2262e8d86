//! `podgate completions`: what a shell needs to complete a command line.

use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{CommandLine, Exit, fail, terminal};

/// Print a script with which a shell completes podgate's command lines.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  source <(podgate completions bash)                 in ~/.bashrc
  podgate completions zsh > ~/.zfunc/_podgate        with ~/.zfunc in fpath
  podgate completions fish > ~/.config/fish/completions/podgate.fish")]
pub(super) struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut CommandLine::command(), "podgate", &mut script);
    match terminal::print(&script) {
        Ok(()) => Exit::Clean.into(),
        Err(error) => fail(&format_args!("cannot write: {error}")),
    }
}
