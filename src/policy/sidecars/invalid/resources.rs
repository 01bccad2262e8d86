//! `resources` (`ValidateContainerResourceRequirements`).

use k8s_openapi::api::core::v1::ResourceRequirements;

use super::SidecarFault;
use super::place::{Checked, Place};
use super::syntax::is_qualified_name;
use crate::pod::Quantity;

/// Resources without a domain that a container can have, but for huge pages.
const STANDARD: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Before the size of huge pages.
const HUGE_PAGES: &str = "hugepages-";

/// What the mutation `resources` fills where it is zero.
const FILLED: [&str; 2] = ["cpu", "memory"];

pub(super) fn check(place: &Place, resources: Option<&ResourceRequirements>) -> Checked {
    let Some(resources) = resources else { return Ok(()) };
    for (key, amounts) in [("limits", &resources.limits), ("requests", &resources.requests)] {
        for (name, amount) in amounts.iter().flatten() {
            check_amount(&place.member(key).member(name), name, &amount.0)?;
        }
    }
    for (name, request) in resources.requests.iter().flatten() {
        let limit = resources.limits.as_ref().and_then(|limits| limits.get(name));
        let place = place.member("requests").member(name);
        check_request(&place, name, &request.0, limit.map(|limit| &*limit.0))?;
    }
    let has_claims = resources.claims.as_ref().is_some_and(|claims| !claims.is_empty());
    place.member("claims").refuse_if(has_claims, || {
        SidecarFault::OutOfPlace("a claim is of the pod's resourceClaims, which no sidecar brings")
    })
}

fn check_amount(place: &Place, name: &str, text: &str) -> Checked {
    place.refuse_if(!is_resource(name), || SidecarFault::NotAResource(name.to_owned()))?;
    let Some(milli) = milli(text) else { return Ok(()) };
    place.refuse_if(milli < 0, || SidecarFault::Negative(text.to_owned()))?;
    let is_part = is_extended(name) && milli % 1000 != 0;
    place.refuse_if(is_part, || SidecarFault::NotWhole(text.to_owned(), name.to_owned()))?;
    let Some(size) = name.strip_prefix(HUGE_PAGES) else { return Ok(()) };
    let size = self::milli(size).filter(|size| *size > 0 && size % 1000 == 0);
    // Bytes come whole: a part of one is rounded up.
    let is_divisible = size.is_some_and(|size| (milli + 999).div_euclid(1000) * 1000 % size == 0);
    place.refuse_if(!is_divisible, || SidecarFault::NotWholePages(text.to_owned()))
}

fn check_request(place: &Place, name: &str, request: &str, limit: Option<&str>) -> Checked {
    let is_shared = is_native(name) && !name.starts_with(HUGE_PAGES);
    let Some(limit) = limit else {
        return place.refuse_if(!is_shared, || SidecarFault::NoLimit(name.to_owned()));
    };
    let (Some(amount), Some(most)) = (milli(request), milli(limit)) else { return Ok(()) };
    if most == 0 && FILLED.contains(&name) {
        return Ok(());
    }
    let (request, limit) = (request.to_owned(), limit.to_owned());
    if is_shared {
        place.refuse_if(amount > most, || SidecarFault::AboveLimit { request, limit })
    } else {
        place.refuse_if(amount != most, || SidecarFault::NotTheLimit { name: name.to_owned(), request, limit })
    }
}

/// The amount in thousandths, rounded up as the API server does (`SetDefaults_ResourceList`).
fn milli(text: &str) -> Option<i128> {
    let nano = Quantity::parse(text).ok()?.nano();
    Some(nano.saturating_add(999_999).div_euclid(1_000_000))
}

/// `ValidateContainerResourceName`.
fn is_resource(name: &str) -> bool {
    if !name.contains('/') {
        return STANDARD.contains(&name) || (name.starts_with(HUGE_PAGES) && is_qualified_name(name));
    }
    is_qualified_name(name) && (is_native(name) || is_extended(name))
}

/// `IsNativeResource`: one that need not be the same in requests and limits.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// `IsExtendedResourceName`: one that comes only whole. In a quota, its name is longer.
fn is_extended(name: &str) -> bool {
    !is_native(name) && !name.starts_with("requests.") && is_qualified_name(&format!("requests.{name}"))
}
