//! The paths at which a container mounts its volumes, and what another mount would hide of them.

use std::collections::HashSet;

use serde_json::Value;

/// Where a container mounts its volumes.
#[derive(Debug)]
pub(super) struct Mounts {
    /// The program that it runs, where the container says so with its whole path.
    program: Option<String>,
    paths: HashSet<String>,
    /// The bytes of the longest path: how far a longer one has to be looked at.
    longest: usize,
}

impl Mounts {
    pub(super) fn of(container: &Value) -> Self {
        let program = container["command"][0].as_str().filter(|program| program.starts_with('/')).map(str::to_owned);
        let mounts = container["volumeMounts"].as_array().into_iter().flatten();
        let paths = mounts.filter_map(|mount| mount["mountPath"].as_str()).map(|path| parts(path).join("/"));
        let paths: HashSet<String> = paths.collect();
        let longest = paths.iter().map(String::len).max().unwrap_or_default();
        Self { program, paths, longest }
    }

    /// Whether another mount would lie over one of them, or over the program.
    pub(super) fn are_hidden_by(&self, path: &str) -> bool {
        let path = parts(path);
        self.is_over(&path) || self.program.as_ref().is_some_and(|program| parts(program).starts_with(&path))
    }

    /// Whether one of them is a path or above it.
    fn is_over(&self, path: &[&str]) -> bool {
        let mut above = String::new();
        for part in path {
            if self.paths.contains(&above) {
                return true;
            }
            if above.len() > self.longest {
                return false;
            }
            if !above.is_empty() {
                above.push('/');
            }
            above.push_str(part);
        }
        self.paths.contains(&above)
    }
}

/// The elements of a path, as they are once it is cleaned.
fn parts(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for part in path.split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_mount_hides_what_is_below_it() {
        let at = |own: &[&str], command: &str| {
            let mounts: Vec<Value> = own.iter().map(|path| json!({"mountPath": path})).collect();
            json!({"volumeMounts": mounts, "command": [command]})
        };
        for (own, command, path, is_hiding) in [
            (&["/etc/a"][..], "a", "/etc/a", true),
            (&["/etc/a/"], "a", "//etc/./a/b/..", true),
            (&["/etc/a"], "a", "/etc/a/b/c", true),
            (&["/etc/a"], "a", "/etc/ab", false),
            (&["/etc/a"], "a", "/etc", false),
            (&["/etc/a"], "a", "/etc/b/a", false),
            (&["/etc/a", "/b"], "a", "/b/c/d/e/f/g", true),
            (&["/"], "a", "/", true),
            (&["/"], "a", "/b", true),
            (&[], "a", "/b", false),
            (&[], "/bin/a", "/bin", true),
            (&[], "/bin/a", "/", true),
            (&[], "/bin/a", "/bin/a/b", false),
        ] {
            assert_eq!(
                Mounts::of(&at(own, command)).are_hidden_by(path),
                is_hiding,
                "{path} over {own:?} or {command}"
            );
        }
        // Looked at no further than any of its own is long: otherwise this would take hours.
        assert!(!Mounts::of(&at(&["/etc/a"], "a")).are_hidden_by(&"/a".repeat(1 << 20)));
    }
}
