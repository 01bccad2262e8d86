//! Whether an object is of a kind that there can be.

use super::Problem;
use crate::pod::WorkloadKind;

/// The one version in which podgate judges its kinds.
const VERSION: &str = "v1";

/// The group of `v1`, that of pods, which has no name.
const CORE: &str = "";

/// The group that most of them once were in.
const EXTENSIONS: &str = "extensions";

/// How many letters may be wrong in the name of a kind for it to be taken for that.
const WRONG_LETTERS_MAX: usize = 2;

/// The kinds that podgate judges, each with its group.
fn judged() -> impl Iterator<Item = (&'static str, &'static str)> {
    let workloads = WorkloadKind::ALL.into_iter().map(|kind| (kind.group(), kind.as_str()));
    std::iter::once((CORE, "Pod")).chain(workloads)
}

/// Whether podgate judges a kind, in whatever group.
pub(super) fn is_judged(kind: &str) -> bool {
    judged().any(|(_, known)| known == kind)
}

/// What is wrong with an `apiVersion` and a `kind`. Those that podgate does not know pass where they are
/// well-formed; what is nearly the name of a kind that it judges does not, for it would never be judged.
pub(super) fn fault(api_version: &str, kind: &str) -> Option<Problem> {
    let (group, version) = api_version.split_once('/').unwrap_or((CORE, api_version));
    let is_well_formed = |text: &str| !text.is_empty() && !text.contains(|one: char| one == '/' || one.is_whitespace());
    if !is_well_formed(version) || (api_version.contains('/') && !is_well_formed(group)) {
        return Some(Problem::NotAnApiVersion(api_version.to_owned()));
    }
    if !kind.chars().all(|one| one.is_ascii_alphanumeric() || one == '-') {
        return Some(Problem::NotAKind(kind.to_owned()));
    }
    let own = group.to_ascii_lowercase();
    if own != EXTENSIONS && !judged().any(|(known, _)| known == own) {
        return None;
    }
    let item = kind.strip_suffix("List").unwrap_or(kind);
    match judged().find(|(_, known)| *known == item) {
        Some((home, _)) if home == group && version == VERSION => None,
        Some((home, _)) => {
            let meant = if home == CORE { VERSION.to_owned() } else { format!("{home}/{VERSION}") };
            let (kind, api_version) = (kind.to_owned(), api_version.to_owned());
            Some(if was_served(home, group, version) {
                Problem::Removed { kind, api_version, meant }
            } else {
                Problem::OfOtherGroup { kind, api_version, meant }
            })
        }
        None if own == EXTENSIONS => None,
        None => meant(&own, kind).map(|meant| Problem::Misspelt { kind: kind.to_owned(), meant }),
    }
}

/// Whether a group had, in a version before its first stable one, kinds that are now in `home`.
fn was_served(home: &str, group: &str, version: &str) -> bool {
    let is_unstable = ["alpha", "beta"].iter().any(|stage| version.contains(stage));
    group != CORE && (home == group || group == EXTENSIONS) && is_unstable
}

/// The kind that was meant: in other letters, in the plural, or, in groups of few kinds, nearly so.
fn meant(group: &str, kind: &str) -> Option<String> {
    let lower = kind.to_ascii_lowercase();
    if lower == "list" && kind != "List" {
        return Some("List".to_owned());
    }
    let (item, list) = match lower.strip_suffix("list") {
        Some(item) if !item.is_empty() => (item, "List"),
        _ => (&*lower, ""),
    };
    let is_meant = |known: &str| {
        let known = known.to_ascii_lowercase();
        let is_near = group != CORE && item.len() > 2 * WRONG_LETTERS_MAX;
        item == known
            || item.strip_suffix('s') == Some(&known)
            || is_near && strsim::damerau_levenshtein(item, &known) <= WRONG_LETTERS_MAX
    };
    judged().find(|(_, known)| is_meant(known)).map(|(_, known)| format!("{known}{list}"))
}

#[cfg(test)]
mod tests {
    use super::fault;

    #[test]
    fn what_is_well_formed_and_no_name_of_a_judged_kind_passes() {
        for (api_version, kind) in [
            ("v1", "Pod"),
            ("v1", "PodList"),
            ("v1", "List"),
            ("v1", "Node"),
            ("v1", "ConfigMap"),
            ("apps/v1", "Deployment"),
            ("apps/v1", "ControllerRevision"),
            ("extensions/v1beta1", "Ingress"),
            ("extensions/v1beta1", "NetworkPolicy"),
            ("example.com/v1", "pod"),
            ("example.com/v1", "Pod"),
            ("example.com/v1", "DenyList"),
            ("monitoring.coreos.com/v1", "PodMonitor"),
        ] {
            assert_eq!(fault(api_version, kind), None, "{api_version} {kind}");
        }
    }

    #[test]
    fn what_is_nearly_a_judged_kind_does_not() {
        for (api_version, kind, said) in [
            ("v1", "pod", "there is no kind \"pod\": did you mean Pod?"),
            ("v1", "POD", "there is no kind \"POD\": did you mean Pod?"),
            ("v1", "Pods", "there is no kind \"Pods\": did you mean Pod?"),
            ("v1", "podList", "there is no kind \"podList\": did you mean PodList?"),
            ("v1", "list", "there is no kind \"list\": did you mean List?"),
            ("apps/v1", "deployment", "there is no kind \"deployment\": did you mean Deployment?"),
            ("apps/v1", "Deploymnet", "there is no kind \"Deploymnet\": did you mean Deployment?"),
            ("batch/v1", "Cronjob", "there is no kind \"Cronjob\": did you mean CronJob?"),
            ("v1", "deployments", "there is no kind \"deployments\": did you mean Deployment?"),
            ("v1", "Deployment", "there is no Deployment in \"v1\": did you mean apiVersion: apps/v1?"),
            ("apps/v1", "Pod", "there is no Pod in \"apps/v1\": did you mean apiVersion: v1?"),
            ("Apps/v1", "Deployment", "there is no Deployment in \"Apps/v1\": did you mean apiVersion: apps/v1?"),
            ("V1", "Pod", "there is no Pod in \"V1\": did you mean apiVersion: v1?"),
            ("apps/v2", "Deployment", "there is no Deployment in \"apps/v2\": did you mean apiVersion: apps/v1?"),
            (
                "apps/v1beta1",
                "Deployment",
                "Kubernetes no longer serves a Deployment of \"apps/v1beta1\": write apiVersion: apps/v1",
            ),
            (
                "batch/v2alpha1",
                "CronJob",
                "Kubernetes no longer serves a CronJob of \"batch/v2alpha1\": write apiVersion: batch/v1",
            ),
            (
                "extensions/v1beta1",
                "DaemonSetList",
                "Kubernetes no longer serves a DaemonSetList of \"extensions/v1beta1\": write apiVersion: apps/v1",
            ),
            ("apps/v1/x", "Deployment", "\"apps/v1/x\" is no apiVersion: write a group"),
            ("apps/", "Deployment", "\"apps/\" is no apiVersion: write a group"),
            ("/v1", "Pod", "\"/v1\" is no apiVersion: write a group"),
            ("v 1", "Pod", "\"v 1\" is no apiVersion: write a group"),
            ("v1", "Pod ", "\"Pod \" is no kind: write letters"),
        ] {
            let fault = fault(api_version, kind).map(|problem| problem.to_string()).unwrap_or_default();
            assert!(fault.starts_with(said), "{api_version} {kind}: {fault}");
        }
    }
}
