//! The forms of names and paths, as `k8s.io/apimachinery/pkg/util/validation` has them.

/// A form that a text may have.
#[derive(Clone, Copy)]
pub(super) struct Syntax {
    /// The form, after "write".
    pub(super) form: &'static str,
    /// Whether a text has it.
    pub(super) fits: fn(&str) -> bool,
}

/// The most characters of a label (RFC 1123, section 2.1, `DNS_LABEL`).
const LABEL_MAX: usize = 63;

/// The most characters of a domain, and of a key of a ConfigMap or Secret.
const SUBDOMAIN_MAX: usize = 253;

/// The most characters of a port's name (RFC 6335, `IANA_SVC_NAME`).
const PORT_NAME_MAX: usize = 15;

/// `IsDNS1123Label`.
pub(super) fn is_label(text: &str) -> bool {
    text.len() <= LABEL_MAX && is_label_of_any_length(text)
}

fn is_label_of_any_length(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// `IsDNS1123Subdomain`.
fn is_subdomain(text: &str) -> bool {
    text.len() <= SUBDOMAIN_MAX && text.split('.').all(is_label_of_any_length)
}

/// `IsQualifiedName`: a name that a domain may precede.
pub(in super::super) fn is_qualified_name(text: &str) -> bool {
    let (domain, name) = match text.split_once('/') {
        Some((domain, name)) => (Some(domain), name),
        None => (None, text),
    };
    domain.is_none_or(is_subdomain) && !name.is_empty() && is_label_value(name)
}

/// `IsValidLabelValue`.
pub(in super::super) fn is_label_value(text: &str) -> bool {
    text.len() <= LABEL_MAX
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        && !text.starts_with(['-', '_', '.'])
        && !text.ends_with(['-', '_', '.'])
}

/// `IsValidPortName`.
fn is_port_name(text: &str) -> bool {
    text.len() <= PORT_NAME_MAX
        && is_label_of_any_length(text)
        && text.bytes().any(|byte| byte.is_ascii_lowercase())
        && !text.contains("--")
}

/// `IsRelaxedEnvVarName`.
fn is_variable(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'=')
}

/// `IsConfigMapKey`.
fn is_key(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= SUBDOMAIN_MAX
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        && text != "."
        && !text.starts_with("..")
}

fn climbs(text: &str) -> bool {
    text.split('/').any(|element| element == "..")
}

pub(super) const SUBDOMAIN: Syntax =
    Syntax { form: "lower-case letters, digits, - and ., such as log-agent", fits: is_subdomain };

/// `ValidateCSIDriverName`.
pub(super) const DRIVER: Syntax = Syntax {
    form: "at most 63 letters, digits, - and ., such as secrets-store.csi.k8s.io",
    fits: |text| text.len() <= LABEL_MAX && is_subdomain(&text.to_lowercase()),
};

pub(super) const PORT_NAME: Syntax = Syntax {
    form: "at most 15 lower-case letters, digits and single -, a letter among them, such as http",
    fits: is_port_name,
};

pub(super) const VARIABLE: Syntax =
    Syntax { form: "printable ASCII characters other than =, such as LOG_LEVEL", fits: is_variable };

pub(super) const KEY: Syntax = Syntax { form: "letters, digits, -, _ and ., such as log.level", fits: is_key };

pub(super) const HEADER: Syntax = Syntax {
    form: "letters, digits and -, such as X-Probe",
    fits: |text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'),
};

/// `validatePathNoBacksteps`.
pub(super) const NO_CLIMBING: Syntax = Syntax { form: "a path without ..", fits: |text| !climbs(text) };

/// `validateLocalDescendingPath`.
pub(super) const DESCENDING: Syntax = Syntax {
    form: "a relative path without .., such as logs/agent",
    fits: |text| !text.starts_with('/') && !climbs(text),
};

/// `ValidateLocalNonReservedPath`.
pub(super) const FILE: Syntax = Syntax {
    form: "a relative path that neither begins with .. nor has it among its elements, such as agent.yaml",
    fits: |text| !text.starts_with('/') && !climbs(text) && !text.starts_with(".."),
};

pub(super) const ABSOLUTE: Syntax =
    Syntax { form: "an absolute path, such as /exports/logs", fits: |text| text.starts_with('/') };
