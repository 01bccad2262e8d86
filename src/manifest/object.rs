//! The objects of a document: itself, or the items of a List.

use super::{Entry, Fault, Node, Problem, Value, kinds};

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
    /// `metadata.name`, or `metadata.generateName` and `*`; empty where it has neither.
    pub name: String,
}

/// The objects of a document; of a list of any kind its items, which may be lists themselves.
#[must_use]
pub fn objects(root: &Node) -> Vec<Result<Object<'_>, Fault>> {
    let mut found = Vec::new();
    collect(root, (None, None), &mut found);
    found
}

/// What an item takes for its `apiVersion` and `kind` where it has none: `PodList` says it.
type Inherited<'n> = (Option<&'n str>, Option<&'n str>);

fn collect<'n>(node: &'n Node, inherited: Inherited<'n>, found: &mut Vec<Result<Object<'n>, Fault>>) {
    let (api_version, kind) = match type_meta(node, inherited) {
        Ok(type_meta) => type_meta,
        Err(fault) => return found.push(Err(fault)),
    };
    let Some(item_kind) = kind.strip_suffix("List").filter(|item_kind| is_list(node, item_kind)) else {
        return found.push(object(node, api_version, kind));
    };
    let inherited = if item_kind.is_empty() { (None, None) } else { (Some(api_version), Some(item_kind)) };
    let Some(items) = node.entry("items").filter(|items| !matches!(items.value.value, Value::Null)) else {
        return found.push(Err(Fault::new(node.position_of("items"), Problem::NoItems(kind.to_owned()))));
    };
    match &items.value.value {
        Value::List(list) => list.iter().for_each(|item| collect(item, inherited, found)),
        _ => found.push(Err(Fault::new(items.position, Problem::NotItems(kind.to_owned())))),
    }
}

/// Whether a kind that ends in List is one; others, such as an `AllowList`, may do so too.
fn is_list(node: &Node, item_kind: &str) -> bool {
    item_kind.is_empty() || kinds::is_judged(item_kind) || node.entry("items").is_some()
}

/// `apiVersion` and `kind`.
fn type_meta<'n>(node: &'n Node, inherited: Inherited<'n>) -> Result<(&'n str, &'n str), Fault> {
    if !matches!(node.value, Value::Mapping(_)) {
        return Err(Fault::new(node.position, Problem::NoObject(node.value.noun())));
    }
    let member = |name: &'static str, inherited| match node.entry(name) {
        Some(entry) => match entry.value.text().filter(|text| !text.is_empty()) {
            Some(text) => Ok(Some(text)),
            None => Err(Fault::new(entry.position, Problem::MissingMember(name))),
        },
        None => Ok(inherited),
    };
    let missing = |problem| Err(Fault::new(node.position, problem));
    match (member("apiVersion", inherited.0)?, member("kind", inherited.1)?) {
        (Some(api_version), Some(kind)) => match kinds::fault(api_version, kind) {
            Some(problem) => {
                let member = if matches!(problem, Problem::NotAKind(_) | Problem::Misspelt { .. }) {
                    "kind"
                } else {
                    "apiVersion"
                };
                Err(Fault::new(node.position_of(member), problem))
            }
            None => Ok((api_version, kind)),
        },
        (None, Some(_)) => missing(Problem::MissingMember("apiVersion")),
        (Some(_), None) => missing(Problem::MissingMember("kind")),
        (None, None) => missing(Problem::Untyped),
    }
}

fn object<'n>(node: &'n Node, api_version: &'n str, kind: &'n str) -> Result<Object<'n>, Fault> {
    let metadata = node.get("metadata");
    let text = |key: &str, path: &'static str| match metadata.and_then(|metadata| metadata.entry(key)) {
        None => Ok(None),
        Some(entry) if matches!(entry.value.value, Value::Null) => Ok(None),
        Some(Entry { value, .. }) if matches!(value.value, Value::Text(_)) => {
            // To the API server, an empty text is none.
            Ok(value.text().filter(|text| !text.is_empty()))
        }
        Some(entry) => {
            let found = &entry.value.value;
            let is_collection = matches!(found, Value::List(_) | Value::Mapping(_));
            let advice = if is_collection { "" } else { ": quote it" };
            Err(Fault::new(entry.position, Problem::NotText { path, found: found.noun(), advice }))
        }
    };
    let name = match text("name", "metadata.name")? {
        Some(name) => name.to_owned(),
        None => text("generateName", "metadata.generateName")?.map_or_else(String::new, |name| format!("{name}*")),
    };
    let namespace = text("namespace", "metadata.namespace")?;
    Ok(Object { node, api_version, kind, namespace, name })
}
