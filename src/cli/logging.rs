//! Where the log goes, and how.

use std::io::IsTerminal;

use clap::ValueEnum;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::FromEnvError;

/// The variable that says what is logged, such as `debug` or `podgate=debug,h2=warn`.
const FILTER_VARIABLE: &str = "PODGATE_LOG";

/// How a line of the log is written.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum LogFormat {
    /// For people
    Text,
    /// For machines, one object a line
    Json,
}

/// Logs to standard error from here on, `info` and above unless `PODGATE_LOG` says otherwise.
pub(super) fn start(format: LogFormat) -> Result<(), String> {
    let filter = EnvFilter::builder()
        .with_default_directive(LevelFilter::INFO.into())
        .with_env_var(FILTER_VARIABLE)
        .from_env()
        .map_err(|error: FromEnvError| {
            format!("cannot read {FILTER_VARIABLE}: {error}; set it to a level, such as debug")
        })?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let started = match format {
        LogFormat::Text => subscriber.try_init(),
        LogFormat::Json => subscriber.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| format!("cannot start the log: {error}"))
}
