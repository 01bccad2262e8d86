//! A pod with the sidecars that are due in it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::iter;

use serde_json::Value as Json;

use super::super::active::ActiveMutations;
use super::super::promises::Lack;
use super::super::{Field, Found, Subject, Violation};
use super::difference::{Difference, difference, lasting_difference};
use super::unfit::unfit;
use super::{Form, Position, Sidecar, Sidecars};
use crate::json::TextMap;
use crate::patch::{Patch, Pointer, Value};
use crate::pod::{Container, ContainerList, PodSpec, SpecText, Volume, WrittenSpec};

/// A pod that asks to be let in, or the template of one.
#[derive(Debug)]
pub struct Candidate<'a> {
    /// `metadata.labels`.
    pub labels: &'a TextMap<'a>,
    /// `spec`.
    pub spec: &'a PodSpec<'a>,
    /// The text of `spec`.
    pub text: SpecText<'a>,
}

/// A pod as it is judged: with the sidecars that it lacks, where it has yet to get them.
#[derive(Debug)]
pub struct Prepared<'a> {
    candidate: &'a Candidate<'a>,
    spec: Cow<'a, PodSpec<'a>>,
    mutations: ActiveMutations<'a>,
    due: Vec<&'a Sidecar>,
    names: Names<'a>,
    injected: Injected<'a>,
    conflicts: Vec<(Violation<'a>, &'a Sidecar)>,
}

/// Where the pod has its containers and volumes; empty where no sidecar is due.
#[derive(Debug, Default)]
struct Names<'a> {
    containers: HashMap<&'a str, (ContainerList, usize)>,
    volumes: HashMap<&'a str, usize>,
}

/// What a pod got, and where.
#[derive(Debug, Default)]
struct Injected<'a> {
    containers: Vec<(ContainerList, usize, Cow<'a, Form<Container<'static>>>)>,
    volumes: Vec<(usize, &'a Form<Volume<'static>>)>,
}

/// What a pod has of a container or volume.
#[derive(Debug)]
enum Presence<'a> {
    Absent,
    Same,
    Differs(Subject<'a>, Clash),
}

/// How what a pod has is not what it should have.
#[derive(Debug)]
enum Clash {
    OtherList(ContainerList),
    Field {
        /// The first.
        difference: Difference,
        /// The first that no update of the pod can mend.
        lasting: Option<Difference>,
    },
    Unread,
}

impl Clash {
    /// What is to be done where it is no work of the pod's author. What others have put into the pod since it
    /// got the sidecar cannot be told from what its author wrote.
    const fn of_a_webhook(&self) -> &'static str {
        match self {
            Self::OtherList(_) => "",
            Self::Field { .. } | Self::Unread => {
                "; if another mutating webhook changed it, have that one leave it alone, or set the same in \
                 mutations.sidecars"
            }
        }
    }
}

impl fmt::Display for Clash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherList(list) => write!(formatter, "it is no {list}"),
            Self::Field { difference, .. } if difference.may_be_unknown() => {
                write!(
                    formatter,
                    "its {difference} (an API server drops what its version or feature gates do not know)"
                )
            }
            Self::Field { difference, .. } => write!(formatter, "its {difference}"),
            Self::Unread => formatter.write_str("it cannot be compared"),
        }
    }
}

impl<'a> Prepared<'a> {
    /// The pod as it is.
    pub(in super::super) fn stored(
        candidate: &'a Candidate<'a>,
        due: Vec<&'a Sidecar>,
        mutations: ActiveMutations<'a>,
    ) -> Self {
        let spec = candidate.spec;
        let mut names = Names::default();
        if !due.is_empty() {
            let of_container = |(list, index, container): (_, _, &'a Container<'a>)| (&*container.name, (list, index));
            names.containers = spec.all_containers().map(of_container).collect();
            names.volumes = spec.volumes.iter().enumerate().map(|(index, volume)| (&*volume.name, index)).collect();
        }
        let (injected, conflicts) = (Injected::default(), Vec::new());
        Self { candidate, spec: Cow::Borrowed(spec), mutations, due, names, injected, conflicts }
    }

    /// The pod with the sidecars that it lacks.
    pub(in super::super) fn injected(
        candidate: &'a Candidate<'a>,
        due: Vec<&'a Sidecar>,
        mutations: ActiveMutations<'a>,
    ) -> Self {
        let mut prepared = Self::stored(candidate, due, mutations);
        let written = prepared.written();
        let mut lacking = Vec::new();
        let mut volumes = Vec::new();
        let mut names_of_volumes = HashSet::new();
        for sidecar in prepared.due.clone() {
            let clashes = prepared.clashes(sidecar, &written);
            if !clashes.is_empty() {
                prepared.conflicts.extend(clashes.into_iter().map(|violation| (violation, sidecar)));
                continue;
            }
            if !prepared.names.containers.contains_key(sidecar.name()) {
                if let Some(violation) = unfit(sidecar, candidate.spec, &lacking) {
                    prepared.conflicts.push((violation, sidecar));
                    continue;
                }
                lacking.push(sidecar);
            }
            volumes.extend(sidecar.volumes.iter().filter(|volume| {
                let name = &*volume.view.name;
                !prepared.names.volumes.contains_key(name) && names_of_volumes.insert(name)
            }));
        }
        prepared.inject(&lacking, volumes);
        prepared
    }

    fn inject(&mut self, sidecars: &[&'a Sidecar], volumes: Vec<&'a Form<Volume<'static>>>) {
        let written = self.candidate.spec;
        if sidecars.is_empty() && volumes.is_empty() {
            return;
        }
        let spec = self.spec.to_mut();
        for list in [ContainerList::Containers, ContainerList::InitContainers] {
            let at = |position| {
                sidecars
                    .iter()
                    .filter(move |sidecar| sidecar.list == list && sidecar.position == position)
                    .map(move |sidecar| sidecar.form(written))
            };
            let containers = spec.list_mut(list);
            let (before, after): (Vec<_>, Vec<_>) = (at(Position::Before).collect(), at(Position::After).collect());
            let first_after = before.len() + containers.len();
            containers.splice(0..0, before.iter().map(|form| form.view.clone()));
            containers.extend(after.iter().map(|form| form.view.clone()));
            let before = before.into_iter().enumerate();
            let after = after.into_iter().enumerate().map(|(index, form)| (first_after + index, form));
            self.injected.containers.extend(before.chain(after).map(|(index, form)| (list, index, form)));
        }
        for volume in volumes {
            self.injected.volumes.push((spec.volumes.len(), volume));
            spec.volumes.push(volume.view.clone());
        }
    }

    /// The pod's spec.
    pub(in super::super) fn spec(&self) -> &PodSpec<'a> {
        &self.spec
    }

    /// Adds what the pod got to the patch. Each place is right once those before it are filled.
    pub(in super::super) fn patch(&self, patch: &mut Patch) {
        let text = |text: &serde_json::value::RawValue| Value::Json(text.to_owned());
        for list in [ContainerList::Containers, ContainerList::InitContainers] {
            let forms = self.injected.containers.iter().filter(|(of, ..)| *of == list);
            if self.candidate.spec.list(list).is_empty() {
                let whole: Vec<Value> = forms.map(|(_, _, form)| text(&form.text)).collect();
                patch.add_list(Pointer::list(list), whole);
            } else {
                for (_, index, form) in forms {
                    patch.add(Pointer::container(list, *index), text(&form.text));
                }
            }
        }
        let volumes = &self.injected.volumes;
        if self.candidate.spec.volumes.is_empty() {
            patch.add_list(Pointer::volumes(), volumes.iter().map(|(_, form)| text(&form.text)).collect());
        } else {
            for (index, form) in volumes {
                patch.add(Pointer::volume(*index), text(&form.text));
            }
        }
    }

    /// Names a place as the pod's author knows it, to whom the sidecars before it are unknown.
    pub(in super::super) fn place_as_written(&self, violation: &mut Violation<'a>) {
        if let Subject::Container { list, index, name } = violation.subject {
            violation.subject = match self.written_index(list, index) {
                Some(index) => Subject::Container { list, index, name },
                None => Subject::Sidecar { list, name },
            };
        }
        if let Field::OfContainer { list, index, member } = violation.field {
            violation.field = match self.written_index(list, index) {
                Some(index) => Field::OfContainer { list, index, member },
                None => Field::Own(list.field()),
            };
        }
    }

    /// Where a container was before the sidecars came; `None` for one of them.
    fn written_index(&self, list: ContainerList, index: usize) -> Option<usize> {
        let places = || self.injected.containers.iter().filter(|(of, ..)| *of == list).map(|(_, place, _)| *place);
        let is_own = places().any(|place| place == index);
        (!is_own).then(|| index - places().filter(|place| *place < index).count())
    }

    /// What stands in the way of sidecars, and of which.
    pub(in super::super) fn conflicts(&self) -> &[(Violation<'a>, &'a Sidecar)] {
        &self.conflicts
    }

    /// What a pod should have of sidecars and has not, each with the sidecar's name.
    pub(in super::super) fn broken_promises(&self) -> Vec<(&'a str, Lack)> {
        let written = self.written();
        let lack = |sidecar: &Sidecar| {
            let container = ("container", sidecar.name(), self.container(sidecar, &written));
            let volumes = sidecar.volumes.iter().map(|form| ("volume", &*form.view.name, self.volume(form, &written)));
            let mut parts = iter::once(container).chain(volumes);
            parts.find_map(|(part, name, presence)| match presence {
                Presence::Same => None,
                Presence::Absent => Some(Lack::of(format!("the sidecar's {part} {name}"))),
                Presence::Differs(_, clash) => {
                    let of_part = |clash: &Clash| format!("the sidecar's {part} {name}, for {clash}");
                    let (due, told) = match clash {
                        // What is elsewhere is not there: a debug container by that name changes nothing.
                        Clash::OtherList(_) => (format!("the sidecar's {part} {name}"), of_part(&clash)),
                        // What lasts is told of first, so that an update is seen to have mended the rest.
                        Clash::Field { lasting: Some(difference), .. } => (
                            format!("the sidecar's {part} {name}, which is another"),
                            of_part(&Clash::Field { difference, lasting: None }),
                        ),
                        Clash::Field { lasting: None, .. } | Clash::Unread => (of_part(&clash), of_part(&clash)),
                    };
                    Some(Lack { due, told })
                }
            })
        };
        self.due.iter().filter_map(|sidecar| Some((sidecar.name(), lack(sidecar)?))).collect()
    }

    /// The names of the containers that are sidecars of the configuration's.
    pub(in super::super) fn own_containers(&self) -> HashSet<&'a str> {
        let written = self.written();
        let got = |name: &str| self.injected.containers.iter().any(|(_, _, form)| *form.view.name == *name);
        let is_own =
            |sidecar: &&&Sidecar| got(sidecar.name()) || matches!(self.container(sidecar, &written), Presence::Same);
        self.due.iter().filter(is_own).map(|sidecar| sidecar.name()).collect()
    }

    /// The names of the volumes that the pod got.
    pub(in super::super) fn own_volumes(&self) -> HashSet<&'a str> {
        let written = self.written();
        let had = self.due.iter().flat_map(|sidecar| &sidecar.volumes);
        let had = had.filter(|form| matches!(self.volume(form, &written), Presence::Same));
        had.chain(self.injected.volumes.iter().map(|(_, form)| *form)).map(|form| &*form.view.name).collect()
    }

    /// The text of what the pod had, where a sidecar may be in it.
    fn written(&self) -> WrittenSpec<'a> {
        let Names { containers, volumes } = &self.names;
        let is_there = |sidecar: &&Sidecar| {
            let has_volume = |form: &Form<Volume<'_>>| volumes.contains_key(&*form.view.name);
            containers.contains_key(sidecar.name()) || sidecar.volumes.iter().any(has_volume)
        };
        if self.due.iter().any(is_there) { self.candidate.text.read() } else { WrittenSpec::default() }
    }

    fn clashes(&self, sidecar: &'a Sidecar, written: &WrittenSpec<'_>) -> Vec<Violation<'a>> {
        let of_container = (self.container(sidecar, written), "");
        let of_volumes = sidecar.volumes.iter().map(|form| (self.volume(form, written), "a volume of "));
        let clash = |(presence, part): (Presence<'a>, &str)| {
            let Presence::Differs(subject, clash) = presence else { return None };
            let name = sidecar.name();
            Some(Violation {
                policy: Sidecars::NAME,
                subject,
                field: Field::Whole,
                found: Found::Value(Cow::Owned(clash.to_string())),
                statement: format!(
                    "has the name of {part}the sidecar {name}: rename it or remove it, for {clash}{}",
                    clash.of_a_webhook()
                ),
            })
        };
        iter::once(of_container).chain(of_volumes).filter_map(clash).collect()
    }

    /// What the pod had of the container of a sidecar.
    fn container(&self, sidecar: &Sidecar, written: &WrittenSpec<'_>) -> Presence<'a> {
        let spec = self.candidate.spec;
        let Some((&name, &(list, index))) = self.names.containers.get_key_value(sidecar.name()) else {
            return Presence::Absent;
        };
        let subject = Subject::Container { list, index, name };
        if list != sidecar.list {
            return Presence::Differs(subject, Clash::OtherList(sidecar.list));
        }
        let form = sidecar.form(spec);
        // An amount that is filled in is neither the configuration's nor what the pod has.
        let mutations = self.mutations.without_resources();
        let mutated = |container: &_, json: &_| mutations.container_after(spec, list, container, json);
        let expected = mutated(&form.view, &form.json);
        let found = written.container(list, index).and_then(|found| mutated(&spec.list(list)[index], &found));
        Presence::of(subject, expected, found)
    }

    /// What the pod had of a volume of a sidecar.
    fn volume(&self, form: &Form<Volume<'static>>, written: &WrittenSpec<'_>) -> Presence<'a> {
        let spec = self.candidate.spec;
        let Some((&name, &index)) = self.names.volumes.get_key_value(&*form.view.name) else { return Presence::Absent };
        let mutated = |volume: &_, json: &_| self.mutations.volume_after(volume, json);
        let expected = mutated(&form.view, &form.json);
        let found = written.volume(index).and_then(|found| mutated(&spec.volumes[index], &found));
        Presence::of(Subject::Volume { index, name }, expected, found)
    }
}

impl<'a> Presence<'a> {
    fn of(subject: Subject<'a>, expected: Option<Json>, found: Option<Json>) -> Self {
        let (Some(expected), Some(found)) = (expected, found) else { return Self::Differs(subject, Clash::Unread) };
        let Some(difference) = difference(&expected, &found) else { return Self::Same };
        let lasting = lasting_difference(&expected, &found);
        Self::Differs(subject, Clash::Field { difference, lasting })
    }
}
