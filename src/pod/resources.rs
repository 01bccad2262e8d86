//! `resources` of a container or a pod, and what the containers of a pod come to.

use std::fmt;

use serde::de::MapAccess;

use super::Quantity;
use super::quantity::BINARY_NANO_MAX;
use crate::json::{self, Members, Skipped, Text};

/// How the names of huge pages begin (`k8s.io/api/core/v1.ResourceHugePagesPrefix`).
pub(crate) const HUGE_PAGES: &str = "hugepages-";

/// The resources that podgate knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResourceName {
    /// `cpu`, in cores.
    Cpu,
    /// `memory`, in bytes.
    Memory,
}

impl ResourceName {
    /// Both, in the order in which they are patched.
    pub const ALL: [Self; 2] = [Self::Cpu, Self::Memory];

    /// The key in `limits` and `requests`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
        }
    }

    /// The path of the request, below a container or the pod's spec.
    #[must_use]
    pub const fn request_field(self) -> &'static str {
        match self {
            Self::Cpu => "resources.requests.cpu",
            Self::Memory => "resources.requests.memory",
        }
    }

    /// The path of the limit, below a container or the pod's spec.
    #[must_use]
    pub const fn limit_field(self) -> &'static str {
        match self {
            Self::Cpu => "resources.limits.cpu",
            Self::Memory => "resources.limits.memory",
        }
    }
}

/// A `v1.ResourceRequirements`.
#[derive(Debug, Clone, Default)]
pub struct ResourceRequirements<'a> {
    /// `limits`.
    pub limits: Option<ResourceList<'a>>,
    /// `requests`.
    pub requests: Option<ResourceList<'a>>,
}

impl<'a> ResourceRequirements<'a> {
    pub(super) fn into_owned(self) -> ResourceRequirements<'static> {
        ResourceRequirements {
            limits: self.limits.map(ResourceList::into_owned),
            requests: self.requests.map(ResourceList::into_owned),
        }
    }

    /// The limit of a resource, where one is written.
    #[must_use]
    pub fn limit(&self, name: ResourceName) -> Option<&Quantity<'a>> {
        self.limits.as_ref().and_then(|limits| limits.get(name))
    }

    /// Whether there is an amount of a resource: of cpu, memory, or huge pages of a size.
    #[must_use]
    pub fn names(&self, name: &str) -> bool {
        [&self.limits, &self.requests].into_iter().flatten().any(|amounts| amounts.has(name))
    }

    /// The request of a resource, where one is written.
    #[must_use]
    pub fn request(&self, name: ResourceName) -> Option<&Quantity<'a>> {
        self.requests.as_ref().and_then(|requests| requests.get(name))
    }
}

impl<'de> Members<'de> for ResourceRequirements<'de> {
    const EXPECTED: &'static str = "a ResourceRequirements";

    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "limits" => self.limits = json::optional_object(map)?,
            "requests" => self.requests = json::optional_object(map)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// A `v1.ResourceList`, for the resources that podgate knows.
#[derive(Debug, Clone, Default)]
pub struct ResourceList<'a> {
    cpu: Option<Quantity<'a>>,
    memory: Option<Quantity<'a>>,
    /// The names of those that are `hugepages-` and a size.
    huge_pages: Vec<Text<'a>>,
}

impl<'a> ResourceList<'a> {
    fn into_owned(self) -> ResourceList<'static> {
        ResourceList {
            cpu: self.cpu.map(Quantity::into_owned),
            memory: self.memory.map(Quantity::into_owned),
            huge_pages: self.huge_pages.into_iter().map(Text::into_owned).collect(),
        }
    }

    /// The amount of a resource, where one is written.
    #[must_use]
    pub fn get(&self, name: ResourceName) -> Option<&Quantity<'a>> {
        match name {
            ResourceName::Cpu => self.cpu.as_ref(),
            ResourceName::Memory => self.memory.as_ref(),
        }
    }

    fn has(&self, name: &str) -> bool {
        match name {
            "cpu" => self.cpu.is_some(),
            "memory" => self.memory.is_some(),
            _ => self.huge_pages.iter().any(|known| &**known == name),
        }
    }
}

impl<'de> Members<'de> for ResourceList<'de> {
    const EXPECTED: &'static str = "a map of quantities";

    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "cpu" => self.cpu = map.next_value()?,
            "memory" => self.memory = map.next_value()?,
            _ if key.starts_with(HUGE_PAGES) => {
                if map.next_value::<Option<Skipped>>()?.is_some() {
                    self.huge_pages.push(key.to_owned().into());
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// An exact amount of a resource, such as the sum of several limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amount {
    name: ResourceName,
    nano: i128,
}

impl Amount {
    /// Nothing of a resource.
    #[must_use]
    pub const fn none(name: ResourceName) -> Self {
        Self { name, nano: 0 }
    }

    /// The amount that a quantity names.
    #[must_use]
    pub fn of(name: ResourceName, quantity: &Quantity<'_>) -> Self {
        Self { name, nano: quantity.nano() }
    }

    /// Both together; what exceeds 128 bits is the largest amount.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self { name: self.name, nano: self.nano.saturating_add(other.nano) }
    }

    /// In units of 10⁻⁹.
    #[must_use]
    pub const fn nano(self) -> i128 {
        self.nano
    }
}

/// As people write it: `2500m` of cpu, `1536Mi` of memory.
impl fmt::Display for Amount {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNIT: i128 = 1_000_000_000;
        if self.nano % UNIT != 0 {
            return match (self.nano % 1_000_000, self.nano % 1_000) {
                (0, _) => write!(formatter, "{}m", self.nano / 1_000_000),
                (_, 0) => write!(formatter, "{}u", self.nano / 1_000),
                _ => write!(formatter, "{}n", self.nano),
            };
        }
        let whole = self.nano / UNIT;
        let binary = [(60, "Ei"), (50, "Pi"), (40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")];
        match binary.iter().find(|(power, _)| whole != 0 && whole % (1 << power) == 0) {
            // Beyond that, a quantity with such a suffix would be read as less.
            Some((power, suffix))
                if self.name == ResourceName::Memory && self.nano.unsigned_abs() <= BINARY_NANO_MAX.unsigned_abs() =>
            {
                write!(formatter, "{}{suffix}", whole >> power)
            }
            _ => write!(formatter, "{whole}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact_and_written_as_people_do() {
        let sum = |name, quantities: &[&'static str]| {
            quantities
                .iter()
                .map(|text| Quantity::parse(*text).unwrap())
                .fold(Amount::none(name), |sum, quantity| sum.plus(Amount::of(name, &quantity)))
                .to_string()
        };
        assert_eq!(sum(ResourceName::Cpu, &["1500m", "1"]), "2500m");
        assert_eq!(sum(ResourceName::Cpu, &["0.5", "500m"]), "1");
        assert_eq!(sum(ResourceName::Cpu, &["1024", "1024"]), "2048");
        assert_eq!(sum(ResourceName::Cpu, &["1", "1n"]), "1000000001n");
        assert_eq!(sum(ResourceName::Cpu, &[]), "0");
        assert_eq!(sum(ResourceName::Memory, &["1Gi", "512Mi"]), "1536Mi");
        assert_eq!(sum(ResourceName::Memory, &["1G"]), "1000000000");
        assert_eq!(sum(ResourceName::Memory, &["3Gi", "1Gi"]), "4Gi");
        assert_eq!(sum(ResourceName::Memory, &["18446744073709551616"]), "18446744073709551616");
    }
}
