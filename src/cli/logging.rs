//! Where the log goes, and how.

use std::env::VarError;

use clap::ValueEnum;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;

use super::terminal::Style;

/// The variable that says what is logged, such as `debug` or `podgate=debug,h2=warn`.
const FILTER_VARIABLE: &str = "PODGATE_LOG";

/// The client of the API server tells of each request that fails; podgate does so once.
const DEFAULT_FILTER: &str = "info,kube_client=off";

/// What a bare level, such as `debug`, is not meant for: HTTP/2 alone has ten lines for each review. Named in
/// the variable, they talk as they are told to.
const TALKATIVE: &str = "h2=info,hyper=info,hyper_util=info,rustls=info,tower=info";

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
    let wrong = |error: &dyn std::error::Error| {
        format!("cannot read {FILTER_VARIABLE}: {error}; set it to a level, such as debug")
    };
    let directives = match std::env::var(FILTER_VARIABLE) {
        Ok(directives) => format!("{TALKATIVE},{directives}"),
        Err(VarError::NotPresent) => DEFAULT_FILTER.to_owned(),
        Err(error) => return Err(wrong(&error)),
    };
    let builder = EnvFilter::builder().with_default_directive(LevelFilter::INFO.into());
    let filter = builder.parse(directives).map_err(|error| wrong(&error))?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        .with_writer(std::io::stderr)
        .with_ansi(Style::of(&std::io::stderr()) == Style::Coloured);
    let started = match format {
        LogFormat::Text => subscriber.try_init(),
        LogFormat::Json => subscriber.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| format!("cannot start the log: {error}"))
}
