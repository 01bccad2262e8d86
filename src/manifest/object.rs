//! The objects of a document: itself, or the items of a List.

use super::{Fault, Node, Problem, Value};

/// A Kubernetes object.
#[derive(Debug)]
pub struct Object<'n> {
    /// The whole of it.
    pub node: &'n Node,
    /// `apiVersion`.
    pub api_version: &'n str,
    /// `kind`.
    pub kind: &'n str,
    /// `metadata.namespace`, where it has one.
    pub namespace: Option<&'n str>,
    /// `metadata.name`, or `metadata.generateName` and `*`.
    pub name: String,
}

/// The objects of a document; of a list of any kind its items, which may be lists themselves.
/// `None` stands for a document or an item that is no Kubernetes object.
#[must_use]
pub fn objects(root: &Node) -> Vec<Result<Option<Object<'_>>, Fault>> {
    let mut found = Vec::new();
    collect(root, (None, None), &mut found);
    found
}

/// What an item takes for its `apiVersion` and `kind` where it has none: `PodList` says it.
type Inherited<'n> = (Option<&'n str>, Option<&'n str>);

fn collect<'n>(node: &'n Node, inherited: Inherited<'n>, found: &mut Vec<Result<Option<Object<'n>>, Fault>>) {
    let (Some(api_version), Some(kind)) = (node.entry("apiVersion"), node.entry("kind")) else {
        found.push(without_type_meta(node, inherited));
        return;
    };
    let (api_version, kind) = match (api_version.value.text(), kind.value.text()) {
        (Some(api_version), Some(kind)) => (api_version, kind),
        (None, _) => return found.push(Err(Fault::new(api_version.position, Problem::MissingMember("apiVersion")))),
        (_, None) => return found.push(Err(Fault::new(kind.position, Problem::MissingMember("kind")))),
    };
    let (Some(item_kind), Some(items)) = (kind.strip_suffix("List"), node.entry("items")) else {
        return found.push(object(node, api_version, kind).map(Some));
    };
    let inherited = if item_kind.is_empty() { (None, None) } else { (Some(api_version), Some(item_kind)) };
    match &items.value.value {
        Value::List(list) => list.iter().for_each(|item| collect(item, inherited, found)),
        Value::Null => {}
        _ => found.push(Err(Fault::new(items.position, Problem::NotItems(kind.to_owned())))),
    }
}

fn without_type_meta<'n>(node: &'n Node, inherited: Inherited<'n>) -> Result<Option<Object<'n>>, Fault> {
    if let (Some(api_version), Some(kind), Value::Mapping(_)) = (inherited.0, inherited.1, &node.value) {
        return object(node, api_version, kind).map(Some);
    }
    // Other files have a kind too, such as a chart's values.
    let is_object = node.entry("metadata").or(node.entry("spec")).is_some();
    match (node.entry("apiVersion"), node.entry("kind")) {
        (None, Some(kind)) if is_object && kind.value.text().is_some_and(is_known_kind) => {
            Err(Fault::new(node.position, Problem::MissingMember("apiVersion")))
        }
        _ => Ok(None),
    }
}

/// Whether a kind is one that podgate judges in some version.
fn is_known_kind(kind: &str) -> bool {
    kind == "Pod" || crate::pod::WorkloadKind::ALL.iter().any(|known| known.as_str() == kind)
}

fn object<'n>(node: &'n Node, api_version: &'n str, kind: &'n str) -> Result<Object<'n>, Fault> {
    let metadata = node.get("metadata");
    let text = |key: &str, path: &'static str| match metadata.and_then(|metadata| metadata.entry(key)) {
        None => Ok(None),
        Some(entry) if matches!(entry.value.value, Value::Null) => Ok(None),
        Some(entry) => entry.value.text().map(Some).ok_or_else(|| Fault::new(entry.position, Problem::NotText(path))),
    };
    let name = match text("name", "metadata.name")? {
        Some(name) => name.to_owned(),
        None => text("generateName", "metadata.generateName")?.map_or_else(String::new, |name| format!("{name}*")),
    };
    let namespace = text("namespace", "metadata.namespace")?.filter(|namespace| !namespace.is_empty());
    Ok(Object { node, api_version, kind, namespace, name })
}
