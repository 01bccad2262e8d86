//! `podgate review`: the server's answer to one AdmissionReview, offline.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::{Args, ValueEnum};
use serde_json::Value;

use super::{Exit, fail, terminal};
use crate::admission::{self, Verdict, Webhook};
use crate::config;
use crate::policy::Policies;

/// Answer one AdmissionReview as the server would, offline.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  podgate review --webhook mutate --patched review.json
  podgate review --webhook validate --config podgate.yaml - < review.json

Exit codes: 0 allowed, 1 denied, 2 usage or unreadable input.")]
pub(super) struct Arguments {
    /// The webhook to ask
    #[arg(long, value_enum)]
    webhook: WebhookName,
    /// The configuration file; the default policy without one
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the object as it would be stored, instead of the answer; a denial is printed as it is
    #[arg(long)]
    patched: bool,
    /// The AdmissionReview, as JSON; - is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum WebhookName {
    Mutate,
    Validate,
}

impl From<WebhookName> for Webhook {
    fn from(name: WebhookName) -> Self {
        match name {
            WebhookName::Mutate => Self::Mutate,
            WebhookName::Validate => Self::Validate,
        }
    }
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let policies = match arguments.config.as_deref().map_or_else(|| Ok(Policies::default()), config::load) {
        Ok(policies) => policies,
        Err(error) => return fail(&error),
    };
    let body = match read(&arguments.file) {
        Ok(body) => body,
        Err(error) => return fail(&format_args!("cannot read {}: {error}", arguments.file.display())),
    };
    let answer = admission::answer(&policies, arguments.webhook.into(), &body, super::today());
    let mut output = match answer.verdict {
        Verdict::Allowed | Verdict::Patched if arguments.patched => match patched(&body, &answer.body) {
            Ok(object) => object,
            Err(error) => return fail(&error),
        },
        _ => answer.body,
    };
    output.push(b'\n');
    if let Err(error) = terminal::print(&output) {
        return fail(&format_args!("cannot write the answer: {error}"));
    }
    match answer.verdict {
        Verdict::Allowed | Verdict::Patched => Exit::Clean.into(),
        Verdict::Denied => Exit::Violations.into(),
        Verdict::Invalid | Verdict::Malformed => Exit::Failure.into(),
    }
}

/// Why the patched object cannot be shown.
#[derive(Debug, thiserror::Error)]
enum PatchedError {
    #[error("cannot read back what was answered: {0}")]
    Json(#[from] serde_json::Error),
    #[error("cannot decode the patch: {0}")]
    Base64(#[from] base64::DecodeError),
    #[error("cannot apply the patch: {0}")]
    Patch(#[from] json_patch::PatchError),
}

/// The object of a review after the patch of its answer, as kube-apiserver applies it.
fn patched(review: &[u8], answer: &[u8]) -> Result<Vec<u8>, PatchedError> {
    let mut object = serde_json::from_slice::<Value>(review)?["request"]["object"].take();
    let answer: Value = serde_json::from_slice(answer)?;
    if let Some(patch) = answer["response"]["patch"].as_str() {
        let patch: json_patch::Patch = serde_json::from_slice(&STANDARD.decode(patch)?)?;
        json_patch::patch(&mut object, &patch)?;
    }
    Ok(serde_json::to_vec_pretty(&object)?)
}

fn read(file: &Path) -> std::io::Result<Vec<u8>> {
    if file.as_os_str() != "-" {
        return std::fs::read(file);
    }
    let mut body = Vec::new();
    std::io::stdin().read_to_end(&mut body)?;
    Ok(body)
}
