//! Reads the command line and runs one command.

use std::process::ExitCode;

use clap::Parser;
use podgate::cli::CommandLine;

fn main() -> ExitCode {
    CommandLine::parse().run()
}
