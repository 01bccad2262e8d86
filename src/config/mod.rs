//! The configuration file: YAML, camelCase, every key optional.
//!
//! The types of its sections are those of the policies themselves ([`crate::policy`]); here is
//! how a file becomes [`Policies`], and what is said of one that does not.

mod error;
mod place;
mod schema;

use std::fs::File;
use std::io::Read;
use std::path::Path;

pub use error::{ConfigError, Fault};
pub use schema::schema;

use crate::policy::Policies;

/// The default policy as a configuration file, with a comment on every key.
pub const DEFAULT: &str = include_str!("default.yaml");

/// The most bytes of a configuration file: as many as a ConfigMap can hold.
const SIZE_MAX: u64 = 1 << 20;

/// Reads a configuration file.
///
/// # Errors
/// A file that cannot be read, or that is not a configuration: the error names line and column.
pub fn load(path: &Path) -> Result<Policies, ConfigError> {
    let file = File::open(path).map_err(|error| ConfigError::Unreadable { path: path.to_owned(), error })?;
    read(path, file)
}

/// Reads a configuration to its end; errors call it `path`.
///
/// # Errors
/// As [`load`].
pub fn read(path: &Path, input: impl Read) -> Result<Policies, ConfigError> {
    let mut bytes = Vec::new();
    let unreadable = |error| ConfigError::Unreadable { path: path.to_owned(), error };
    input.take(SIZE_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if u64::try_from(bytes.len()).is_ok_and(|size| size > SIZE_MAX) {
        return Err(ConfigError::TooLarge { path: path.to_owned() });
    }
    let text = std::str::from_utf8(&bytes).map_err(|error| Fault::not_utf8(&bytes[..error.valid_up_to()]));
    text.and_then(parse).map_err(|fault| ConfigError::Invalid { path: path.to_owned(), fault })
}

/// Reads the text of a configuration file; an empty one is the default policy.
///
/// # Errors
/// What is wrong, and where.
pub fn parse(text: &str) -> Result<Policies, Fault> {
    let options =
        serde_saphyr::options! { with_snippet: false, duplicate_keys: serde_saphyr::DuplicateKeyPolicy::Error };
    let policies = serde_saphyr::from_str_with_options::<Option<Policies>>(text, options)
        .map(Option::unwrap_or_default)
        .map_err(|error| Fault::new(&error, text))?;
    match policies.contradiction() {
        Some(contradiction) => {
            let place = place::of(text, &contradiction.path());
            Err(Fault::at(place, error::in_words(contradiction.to_string()), text))
        }
        None => Ok(policies),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        match parse(text) {
            Ok(policies) => panic!("{text:?} was taken for {policies:?}"),
            Err(fault) => fault.to_string(),
        }
    }

    #[test]
    fn an_empty_file_is_the_default_policy() {
        for text in [
            "",
            "\n",
            "# nothing\n",
            "---\n",
            "{}",
            "mutations:\n  securityContext: { runAsNonRoot: , allowPrivilegeEscalation: }\n",
            "mutations:\nvalidations:\n  hostPath:\n",
        ] {
            assert_eq!(parse(text), Ok(Policies::default()), "{text:?}");
        }
    }

    #[test]
    fn the_default_file_says_what_is_the_default() {
        assert_eq!(parse(DEFAULT), Ok(Policies::default()));
    }

    #[test]
    fn the_default_file_names_every_key() {
        let mut sections = vec![];
        let names: Vec<&str> =
            DEFAULT.lines().filter_map(|line| line.trim().split_once(':')).map(|pair| pair.0).collect();
        for key in [
            "mutations",
            "sidecars",
            "images",
            "mirrors",
            "pins",
            "securityContext",
            "allowPrivilegeEscalation",
            "runAsNonRoot",
            "resources",
            "limits",
            "requests",
            "cpu",
            "memory",
            "validations",
            "privileged",
            "rootUser",
            "imageTag",
            "forbidden",
            "hostPath",
            "allow",
            "requireDigest",
            "allowedRegistries",
            "hostNetwork",
            "hostPID",
            "hostIPC",
            "hostPorts",
            "containerCount",
            "max",
            "promises",
            "action",
            "exclude",
            "namespaces",
            "users",
            "groups",
            "workloads",
            "namespaceQuota",
        ] {
            if !names.contains(&key) {
                sections.push(key);
            }
        }
        assert!(sections.is_empty(), "missing: {sections:?}");
    }

    #[test]
    fn an_unknown_key_is_named_with_its_place_and_the_nearest_key() {
        assert_eq!(
            fault("validations:\n  privilegd: { action: deny }\n"),
            "line 2, column 3: there is no key \"privilegd\" here: did you mean \"privileged\"? the keys are \
             privileged, rootUser, imageTag, hostPath, hostNetwork, hostPID, hostIPC, hostPorts, \
             containerCount, cpu, memory, promises\n    \
             2 |   privilegd: { action: deny }"
        );
        assert_eq!(
            fault("somethingElse: 1\n"),
            "line 1, column 1: there is no key \"somethingElse\" here: the keys are mutations, validations, exclude, \
             workloads, namespaceQuota\n    1 | somethingElse: 1"
        );
    }

    #[test]
    fn wrong_values_are_named_with_their_place() {
        for (text, line, said) in [
            ("validations:\n  privileged:\n    action: deney\n", 3, "deny"),
            ("validations:\n  containerCount: { max: many }\n", 2, "a whole number"),
            ("validations:\n  containerCount: { max: -1 }\n", 2, "a whole number"),
            ("validations:\n  hostPath: deny\n", 2, "keys and values"),
            ("validations:\n  hostPath:\n    allow: /data\n", 3, "here belongs a list"),
            ("validations:\n  hostPath:\n    allow:\n      - /data\n      - ../x\n", 5, "absolute"),
            ("mutations:\n  resources:\n    limits: { cpu: 1x }\n", 3, "quantity"),
            ("mutations:\n  resources:\n    limits: { cpu: 0 }\n", 3, "above zero"),
            ("validations:\n  cpu:\n    action: deny\n", 3, "there is no max"),
            ("validations:\n  memory: { max: 0 }\n", 2, "above zero"),
            (
                "validations:\n  imageTag:\n    allowedRegistries: [docker.io, library]\n",
                3,
                "\"library\" is no registry",
            ),
            ("validations:\n  privileged:\n    message: \"{image}\"\n", 3, "there are {container}, {path} and {found}"),
            ("validations:\n  privileged:\n    message: \"\"\n", 3, "empty message"),
            ("exclude:\n  users:\n    - { name: a, until: 2026-02-30 }\n", 3, "\"2026-02-30\" is no date"),
            ("exclude:\n  users:\n    - a\n    - name: b\n      untill: 2026-01-01\n", 5, "did you mean \"until\"?"),
            ("exclude:\n  users:\n    - a\n    - 7\n", 4, "in quotes"),
            ("exclude:\n  images: [nginx]\n", 2, "namespaces, users, groups"),
            ("validations:\n  hostPath:\n    exclude: { containers: [a] }\n", 3, "namespaces, users, groups"),
            ("validations:\n  imageTag:\n    exclude:\n      images: [\"nginx*\"]\n", 4, "docker.io/library/nginx*"),
            ("mutations:\n  images:\n    pins:\n      redis: \"7\"\n      nginx: 1.27\n", 5, "a number is no tag"),
            ("mutations:\n  images:\n    pins:\n      nginx: 1\n", 4, "quote it, as in \"1.30\""),
            ("mutations:\n  images:\n    pins:\n      nginx:\n", 4, "there is no version"),
            ("mutations:\n  images:\n    pins:\n      nginx: \"1:2\"\n", 4, "\"1:2\" is neither a tag"),
            ("mutations:\n  images:\n    pins:\n      nginx: sha256:abc\n", 4, "\"sha256:abc\" is neither a tag"),
            ("mutations:\n  images:\n    pins:\n      nginx:1.27: \"1\"\n", 4, "\"nginx:1.27\" is no repository"),
            ("mutations:\n  images:\n    mirrors:\n      library: r.io\n", 4, "\"library\" is no registry"),
            ("mutations:\n  images:\n    mirrors:\n      docker.io: hub\n", 4, "\"hub\" is no registry"),
            ("mutations:\n  images:\n    mirrors:\n      docker.io: HUB/a\n", 4, "\"HUB/a\" is no registry"),
            ("mutations:\n  images:\n    mirrors:\n      docker.io: https://r.io\n", 4, "is no registry"),
            ("mutations:\n  images:\n    mirror: {}\n", 3, "did you mean \"mirrors\"?"),
            ("mutations:\n  images:\n    mirrors: [docker.io]\n", 3, ""),
            ("mutations:\n  resources:\n    requests: { cpu: 0 }\n", 3, "above zero"),
            ("mutations: [1]\n", 1, ""),
            (
                "mutations:\n  sidecars:\n    - container: null\n",
                3,
                "this is null, where the API has a value of type Container",
            ),
            (
                "mutations:\n  sidecars:\n    - container:\n        name: a\n        image: a:1\n        env: [null]\n",
                6,
                "this is null, where the API has a value of type EnvVar",
            ),
            (
                "mutations:\n  sidecars:\n    - container: { name: a, image: \"a:1\" }\n      native: \"yes\"\n",
                4,
                "true or false",
            ),
            ("mutations:\n  securityContext: { runAsNonRoot: \"no\" }\n", 2, "true or false"),
            ("validations:\n  imageTag:\n    requireDigest: \"true\"\n", 3, "true or false"),
            ("validations:\n  privileged:\n    message: \"a\\e[0m\"\n", 3, "no control characters but line breaks"),
            ("workloads: maybe\n", 1, "deny, warn, off"),
            ("workloads: warn\nworkloads: off\n", 2, "workloads"),
            ("exclude:\n  namespaces: kube-system\n", 2, ""),
            ("namespaceQuota: { pods: 50 }\n", 1, "namespaces"),
            ("namespaceQuota:\n  namespaces: [a]\n", 2, "pods"),
            ("namespaceQuota:\n  pods: 0\n  namespaces: [a]\n", 2, "0 would let no pod in"),
            ("namespaceQuota:\n  pods: -1\n  namespaces: [a]\n", 2, "a whole number of pods"),
            ("namespaceQuota:\n  pods: 1.5\n  namespaces: [a]\n", 2, "a whole number of pods"),
            ("namespaceQuota:\n  pods: 5000000000\n  namespaces: [a]\n", 2, "a whole number of pods"),
            ("namespaceQuota:\n  pods: \"50\"\n  namespaces: [a]\n", 2, "a whole number of pods"),
            ("namespaceQuota:\n  pods: 50\n  namespaces: []\n", 3, "name at least one"),
            ("namespaceQuota:\n  pods: 50\n  namespaces:\n    - a\n    - Team-*\n", 5, "matches no namespace"),
            ("namespaceQuota:\n  pods: 50\n  namespaces: [\"\"]\n", 3, "matches no namespace"),
            ("namespaceQuota:\n  pods: 50\n  namespaces: [a]\n  pod: 1\n", 4, "did you mean \"pods\"?"),
            ("a: b: c\n", 1, ""),
        ] {
            let fault = fault(text);
            assert!(fault.starts_with(&format!("line {line}, ")), "{text:?}: {fault}");
            assert!(fault.contains(said), "{text:?}: {fault}");
        }
    }

    #[test]
    fn settings_that_contradict_each_other_are_named_with_their_place() {
        for (text, place, said) in [
            (
                "mutations:\n  images:\n    mirrors:\n      docker.io: r.io/hub\n      r.io: s.io\n",
                "line 4, column 18",
                "images from \"docker.io\" are to come from r.io/hub, but a mirror of \"r.io\" would send those on: name \
                 a target that no mirror matches",
            ),
            (
                "mutations:\n  images:\n    mirrors:\n      r.io/hub/a: s.io\n      docker.io: r.io/hub\n",
                "line 5, column 18",
                "images from \"docker.io\" are to come from r.io/hub, but a mirror of \"r.io/hub/a\" would send those",
            ),
            (
                "mutations:\n  images:\n    mirrors: { docker.io: docker.io/hub }\n",
                "line 3, column 27",
                "images from \"docker.io\" are to come from docker.io/hub, but a mirror of \"docker.io\" would",
            ),
            (
                "mutations:\n  images:\n    mirrors: { quay.io/a/b: quay.io/a }\n",
                "line 3, column 29",
                "images from \"quay.io/a/b\" are to come from quay.io/a, but a mirror of \"quay.io/a/b\" would",
            ),
            (
                "mutations:\n  images:\n    mirrors:\n      docker.io: r.io\n      Index.Docker.io: s.io\n",
                "line 5, column 24",
                "\"Index.Docker.io\" and \"docker.io\" above are the same: keep one",
            ),
            (
                "mutations:\n  images:\n    pins:\n      nginx: \"1\"\n      docker.io/nginx: \"2\"\n",
                "line 5, column 24",
                "\"docker.io/nginx\" and \"nginx\" are both docker.io/library/nginx, but pinned to different versions",
            ),
            (
                "mutations:\n  images:\n    pins:\n      quay.io/a: \"1\"\n      r.io/q/a: \"2\"\n    \
                 mirrors: { quay.io: r.io/q }\n",
                "line 5, column 17",
                "\"r.io/q/a\" and \"quay.io/a\" are both r.io/q/a, but pinned to different versions: keep one",
            ),
            (
                "mutations:\n  images:\n    pins:\n      redis: \"7\"\n      nginx: latest\n",
                "line 5, column 14",
                "\"nginx\" is pinned to the tag latest, which validations.imageTag.forbidden has: name a version",
            ),
            (
                "mutations:\n  images:\n    pins: { nginx: stable }\nvalidations:\n  \
                 imageTag: { action: off, forbidden: [stable] }\n",
                "line 3, column 20",
                "\"nginx\" is pinned to the tag stable, which validations.imageTag.forbidden has",
            ),
            (
                "validations:\n  imageTag: { requireDigest: true }\nmutations:\n  images:\n    pins: { nginx: \"1\" }\n",
                "line 5, column 20",
                "\"nginx\" is pinned to the tag 1, but validations.imageTag.requireDigest denies tags: name a digest",
            ),
            (
                "mutations:\n  resources:\n    limits: { cpu: 2 }\n    requests: { cpu: 2001m }\n",
                "line 4, column 22",
                "the default request, 2001m, is above the default in limits.cpu, 2: lower the request",
            ),
            (
                "mutations:\n  resources:\n    requests:\n      cpu: 1\n      memory: 2Gi\n",
                "line 5, column 15",
                "the default request, 2Gi, is above the default in limits.memory, 1Gi: lower the request",
            ),
        ] {
            let fault = fault(text);
            assert!(fault.starts_with(&format!("{place}: {said}")), "{text:?}: {fault}");
        }
    }

    #[test]
    fn what_no_type_of_the_settings_takes_is_told_in_words_at_its_place() {
        for (text, said) in [
            (
                "mutations: { resources: { limits: { memory: 512m } } }",
                "column 45: \"512m\" is less than a byte of memory: is 512Mi meant?",
            ),
            (
                "mutations: { resources: { requests: { memory: \"0.5\" } } }",
                "column 47: \"0.5\" is less than a byte of memory\n",
            ),
            (
                "validations: { memory: { max: 512m } }",
                "column 31: \"512m\" is less than a byte of memory: is 512Mi meant?",
            ),
            ("exclude: { namespaces: [1e3] }", "column 25: here belongs a name, and this is none without quotes"),
            ("validations: { cpu: { max: 0.5m } }", "column 28: \"0.5m\" is finer than 1m, the least of cpu"),
            ("validations: { cpu: { max: true } }", "column 28: here belongs a quantity such as"),
            ("validations: { cpu: { max: [1] } }", "column 28: here belongs a quantity such as"),
            (
                "validations: { imageTag: { forbidden: [\"*\"] } }",
                "column 40: \"*\" is no tag, so that no image has it: ",
            ),
            (
                "validations: { imageTag: { forbidden: [\"\"] } }",
                "column 40: \"\" is no tag, so that no image has it: ",
            ),
            (
                "validations: { imageTag: { forbidden: [\"la:test\"] } }",
                "column 40: \"la:test\" is no tag, so that no ",
            ),
            ("validations: { imageTag: { forbidden: [1.10] } }", "column 40: here belongs a text, and this is none "),
            ("validations: { imageTag: { allowedRegistries: [~] } }", "column 48: here belongs a text, and there is "),
            (
                "mutations: { images: { mirrors: { docker.io: ~ } } }",
                "column 46: here belongs a text, and there is none",
            ),
            ("mutations: { images: { mirrors: { ~: a.b } } }", "column 35: here belongs a text, and there is none"),
            (
                "validations: { hostPath: { allow: [~] } }",
                "column 36: here belongs a text, and there is none: write one",
            ),
            (
                "validations: { privileged: { message: 5 } }",
                "column 39: here belongs a text, and this is none without ",
            ),
            (
                "validations: { containerCount: { max: true } }",
                "column 39: here belongs a whole number of containers, ",
            ),
            ("validations: { containerCount: { max: \"5\" } }", "column 39: here belongs a whole number of containers"),
            ("validations: { containerCount: { max: -1 } }", "column 39: here belongs a whole number of containers, "),
            (
                "namespaceQuota: { pods: ~, namespaces: [a] }",
                "column 25: here belongs a whole number of pods, such as ",
            ),
            (
                "namespaceQuota: { pods: 5, namespaces: [~] }",
                "column 41: here belongs a text, and there is none: write ",
            ),
        ] {
            let fault = fault(text);
            assert!(fault.starts_with(&format!("line 1, {said}")), "{text}: {fault}");
        }
        let taken = "mutations: { resources: { limits: { cpu: 1m, memory: 1500k } } }";
        parse(taken).unwrap_or_else(|fault| panic!("{fault}"));
    }

    #[test]
    fn what_only_looks_like_a_contradiction_is_taken() {
        for text in [
            "mutations:\n  images:\n    mirrors: { docker.io: r.io/hub, r.io/hub2: s.io, quay.io: r.io/hub }\n",
            "mutations:\n  images:\n    pins: { nginx: \"1\", docker.io/nginx: \"1\" }\n",
            "mutations:\n  images:\n    pins: { nginx: latest }\nvalidations:\n  imageTag: { forbidden: [] }\n",
            "mutations:\n  images:\n    pins: { nginx: \"1\" }\nvalidations:\n  \
             imageTag: { action: warn, requireDigest: true }\n",
            "mutations:\n  resources:\n    requests: { cpu: 1000m, memory: 1Gi }\n",
            "mutations:\n  resources:\n    limits: { cpu: null }\n    requests: { cpu: 9 }\n",
            "mutations:\n  images:\n    mirrors:\n    pins:\n  resources:\n    requests:\n",
        ] {
            parse(text).unwrap_or_else(|fault| panic!("{text:?}: {fault}"));
        }
    }

    #[test]
    fn reads_every_setting() {
        let policies = parse(
            "mutations:\n  securityContext: { allowPrivilegeEscalation: true, runAsNonRoot: false }\n  \
             resources: { limits: { cpu: 2, memory: null } }\n\
             validations:\n  promises: { action: off }\n  containerCount: { max: 9, action: audit }\n  \
             hostPath: { allow: [/srv/**] }\n\
             exclude: { users: [\"system:serviceaccount:ops:*\"] }\nworkloads: deny\n",
        );
        let policies = policies.unwrap_or_else(|fault| panic!("{fault}"));
        let text = format!("{policies:?}");
        assert!(policies.mutations.security_context.allow_privilege_escalation, "{text}");
        assert_eq!(policies.validations.container_count.max, 9);
        assert_eq!(policies.validations.promises.action, crate::policy::Action::Off);
        assert_eq!(policies.workloads, crate::policy::Workloads::Deny);
        assert_eq!(policies.exclude.namespaces, crate::policy::Exclude::default().namespaces);
        assert!(policies.exclude.users.cover("system:serviceaccount:ops:x", time::Date::MIN));
    }
}
