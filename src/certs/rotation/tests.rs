//! A small world in place of a cluster: one Secret, two webhook configurations, and replicas that
//! look at them in turn, each by a clock of its own.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::Change::{AddAuthority, Begin, DropOldAuthorities, RenewLeaf, Restore};
use super::*;
use crate::certs;

const DAY: Duration = Duration::DAY;

fn lifetimes() -> Lifetimes {
    Lifetimes::new(365 * DAY, 90 * DAY).unwrap()
}

fn start() -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap()
}

/// What the API server has.
struct World {
    now: OffsetDateTime,
    secret: Option<Material>,
    /// How often the Secret was written: its resourceVersion.
    version: usize,
    registrations: [Registration; 2],
    changes: Vec<Change>,
}

struct Replica {
    rotation: Rotation,
    shown: Option<ServerCertificate>,
    /// How far its clock is ahead.
    ahead: Duration,
}

impl Replica {
    fn new() -> Self {
        Self::ahead(Duration::ZERO)
    }

    fn ahead(ahead: Duration) -> Self {
        Self { rotation: Rotation::new(lifetimes()), shown: None, ahead }
    }

    /// What it decides, without doing it.
    fn decide(&mut self, world: &World) -> Steps {
        self.rotation.next(world.secret.as_ref(), &world.registrations, world.now + self.ahead)
    }

    /// Looks once, as the keeper does.
    fn look(&mut self, world: &mut World) -> Option<OffsetDateTime> {
        let seen = world.version;
        let steps = self.decide(world);
        self.finish(steps, seen, world)
    }

    /// Does what was decided when the Secret had the version `seen`.
    fn finish(&mut self, steps: Steps, seen: usize, world: &mut World) -> Option<OffsetDateTime> {
        self.shown = steps.serve.or(self.shown.take());
        if let Some(bundle) = steps.bundle {
            for registration in &mut world.registrations {
                if let Registration::Present(bundles) = registration {
                    bundles.fill(bundle.clone());
                }
            }
        }
        if let Some(change) = steps.write {
            let material = self.rotation.carry_out(change, world.secret.as_ref(), world.now + self.ahead).unwrap();
            if seen == world.version {
                world.write(Some(material));
                world.changes.push(change);
            }
        }
        steps.wake
    }

    /// Whether an API server with this caBundle takes what is shown.
    fn is_trusted_by(&self, bundle: &[u8], now: OffsetDateTime) -> bool {
        let shown = self.shown.as_ref().unwrap();
        let trusts = |authority: &Authority| authority.validity.includes(now) && authority.signed(shown);
        shown.validity().includes(now) && authorities(bundle).iter().any(trusts)
    }
}

impl World {
    fn new() -> Self {
        let blank = |webhooks| Registration::Present(vec![Vec::new(); webhooks]);
        Self { now: start(), secret: None, version: 0, registrations: [blank(1), blank(2)], changes: Vec::new() }
    }

    fn write(&mut self, secret: Option<Material>) {
        self.secret = secret;
        self.version += 1;
    }

    fn material(&mut self) -> &mut Material {
        self.secret.as_mut().unwrap()
    }

    fn holdings(&self) -> Holdings {
        Holdings::read(self.secret.as_ref().unwrap())
    }

    fn bundles(&self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        for registration in &self.registrations {
            if let Registration::Present(bundles) = registration {
                all.extend(bundles.clone());
            }
        }
        all
    }

    /// Lets the replicas look in turn until nobody has anything to do.
    fn settle(&mut self, replicas: &mut [Replica]) {
        for _ in 0..5 {
            for replica in &mut *replicas {
                replica.look(self);
            }
        }
    }

    /// Whether every caBundle trusts every replica.
    fn is_in_order(&self, replicas: &[Replica]) -> bool {
        self.bundles().iter().all(|bundle| replicas.iter().all(|replica| replica.is_trusted_by(bundle, self.now)))
    }
}

/// A world in which one replica has begun.
fn begun() -> (World, Replica) {
    let (mut world, mut replica) = (World::new(), Replica::new());
    world.settle(std::slice::from_mut(&mut replica));
    world.changes.clear();
    (world, replica)
}

fn authorities(bundle: &[u8]) -> Vec<Authority> {
    Holdings::read(&Material { authorities: bundle.to_vec(), ..Material::default() }).authorities
}

#[test]
fn from_nothing_one_write_is_enough() {
    let (mut world, mut replicas) = (World::new(), [Replica::new(), Replica::new(), Replica::new()]);
    world.settle(&mut replicas);
    assert_eq!(world.changes, [Begin]);
    assert!(world.is_in_order(&replicas));
    assert_eq!(world.bundles(), vec![world.material().authorities.clone(); 3]);
}

#[test]
fn of_two_that_write_at_once_the_second_takes_what_the_first_wrote() {
    let (mut world, mut first, mut second) = (World::new(), Replica::new(), Replica::new());
    let (of_first, of_second) = (first.decide(&world), second.decide(&world));
    assert_eq!((of_first.write, of_second.write), (Some(Begin), Some(Begin)));
    first.finish(of_first, 0, &mut world);
    second.finish(of_second, 0, &mut world);
    assert_eq!((world.version, second.shown.is_none()), (1, true));
    let mut replicas = [first, second];
    world.settle(&mut replicas);
    assert_eq!(world.version, 1);
    assert!(world.is_in_order(&replicas));
}

#[test]
fn a_configuration_that_is_not_there_is_not_missed() {
    let mut world = World::new();
    world.registrations = [Registration::Absent, Registration::Absent];
    let mut replicas = [Replica::new()];
    world.settle(&mut replicas);
    assert_eq!(world.registrations, [Registration::Absent, Registration::Absent]);
    assert!(replicas[0].shown.is_some());
}

#[test]
fn a_blank_cabundle_is_filled_again() {
    let (mut world, mut replica) = begun();
    let before = world.bundles();
    for blank in [Vec::new(), b"\n".to_vec()] {
        world.registrations[1] = Registration::Present(vec![before[0].clone(), blank]);
        replica.look(&mut world);
        assert_eq!(world.bundles(), before);
    }
    assert_eq!(world.version, 1);
}

#[test]
fn years_pass_and_no_api_server_ever_distrusts_a_replica() {
    let mut world = World::new();
    let mut replicas = [Replica::new(), Replica::new(), Replica::new()];
    world.settle(&mut replicas);
    for day in 0..3 * 365 {
        world.now += DAY;
        // Not everybody looks every day, and one starts again now and then.
        if day % 100 == 0 {
            replicas[1] = Replica::new();
            replicas[1].look(&mut world);
        }
        for index in 0..replicas.len() {
            if day % (index + 1) == 0 {
                replicas[index].look(&mut world);
                assert!(world.is_in_order(&replicas), "{}: {:?}", world.now, world.changes);
            }
        }
        assert!(world.holdings().authorities.len() <= 2);
    }
    assert_eq!(world.changes[0], Begin);
    // The first authority is due after 243 days, the leaf that comes next is of the second.
    assert_eq!(
        world.changes[1..8],
        [RenewLeaf, RenewLeaf, RenewLeaf, RenewLeaf, AddAuthority, RenewLeaf, DropOldAuthorities]
    );
    let count = |change| world.changes.iter().filter(|found| **found == change).count();
    assert_eq!([count(Begin), count(AddAuthority), count(DropOldAuthorities)], [1, 4, 4]);
    assert_eq!(count(RenewLeaf), 18);
}

/// A world whose leaf was renewed when its authority was just about to be due, and now both are.
fn both_due() -> (World, Replica) {
    let (mut world, mut replica) = begun();
    world.now = world.holdings().signer.unwrap().validity.due() - DAY;
    while world.holdings().server.unwrap().validity().due() <= world.now {
        replica.look(&mut world);
    }
    replica.look(&mut world);
    let due = world.holdings().server.unwrap().validity().due();
    assert!(world.holdings().signer.unwrap().validity.due() < due);
    world.now = due;
    world.changes.clear();
    (world, replica)
}

#[test]
fn the_leaf_of_a_new_authority_waits_until_it_is_published_for_a_minute() {
    let (mut world, mut replica) = both_due();
    replica.look(&mut world);
    assert_eq!(world.changes, [AddAuthority]);
    let both = world.holdings().authorities;
    assert_eq!(both.len(), 2);
    assert!(world.holdings().server.unwrap().issuer.is(&both[1]) && world.holdings().signer.unwrap().is(&both[0]));

    // It publishes, and somebody undoes that all the time.
    for _ in 0..100 {
        replica.look(&mut world);
        assert_eq!(authorities(&world.bundles()[2]).len(), 2);
        world.registrations[1] = Registration::Present(vec![Vec::new(), Vec::new()]);
        world.now += Duration::minutes(1);
    }
    // It cannot see whether it is published.
    for _ in 0..100 {
        world.registrations[0] = Registration::Unknown;
        replica.look(&mut world);
        world.now += Duration::minutes(1);
    }
    assert_eq!(world.changes, [AddAuthority]);

    world.registrations[0] = Registration::Absent;
    replica.look(&mut world);
    let wake = replica.look(&mut world).unwrap();
    assert_eq!(wake, world.now + Duration::minutes(1));
    world.now = wake - Duration::SECOND;
    replica.look(&mut world);
    assert_eq!(world.changes, [AddAuthority]);
    world.now = wake;
    replica.look(&mut world);
    assert_eq!(world.changes, [AddAuthority, RenewLeaf]);
    assert!(world.holdings().server.unwrap().issuer.is(&both[0]));
    replica.look(&mut world);
    assert!(replica.is_trusted_by(&world.bundles()[0], world.now));
}

#[test]
fn a_leaf_that_ends_is_renewed_whoever_trusts_the_new_authority() {
    let (mut world, mut replica) = both_due();
    world.registrations[0] = Registration::Unknown;
    world.settle(std::slice::from_mut(&mut replica));
    assert_eq!(world.changes, [AddAuthority]);
    world.now = world.holdings().server.unwrap().validity().ends - Duration::seconds(30);
    replica.look(&mut world);
    assert_eq!(world.changes, [AddAuthority, RenewLeaf]);
}

#[test]
fn the_old_authority_stays_until_a_third_of_the_new_leafs_life() {
    let (mut world, mut replica) = both_due();
    for _ in 0..4 {
        replica.look(&mut world);
        world.now += Duration::minutes(1);
    }
    assert_eq!(world.changes, [AddAuthority, RenewLeaf]);
    let established = world.holdings().server.unwrap().validity().established();
    assert!(established - world.now > 29 * DAY);
    world.now = established - Duration::SECOND;
    assert_eq!(replica.look(&mut world), Some(established));
    assert_eq!(world.changes.len(), 2);
    world.now = established;
    world.settle(std::slice::from_mut(&mut replica));
    assert_eq!(world.changes[2..], [DropOldAuthorities]);
    assert_eq!(authorities(&world.bundles()[0]).len(), 1);
    assert!(replica.is_trusted_by(&world.bundles()[0], world.now));
}

/// A name, what is done to the Secret, and what is done about it.
type Corruption<'c> = (&'static str, &'c dyn Fn(&mut Material), Change);

/// What can be wrong with a Secret, and what a replica that knows nothing makes of it.
#[test]
fn what_is_left_of_a_corrupted_secret_is_kept() {
    let other = begun().0.secret.unwrap();
    let foreign = rcgen::generate_simple_self_signed(vec!["example.com".to_owned()]).unwrap();
    let junk = || b"junk".to_vec();
    let cases: [Corruption<'_>; 12] = [
        ("nothing in it", &|material| *material = Material::default(), Begin),
        ("no authority", &|material| material.authorities.clear(), Begin),
        ("junk for an authority", &|material| material.authorities = junk(), Begin),
        ("another authority", &|material| material.authorities.clone_from(&other.authorities), Begin),
        ("no authority key", &|material| material.authority_key.clear(), AddAuthority),
        ("junk for an authority key", &|material| material.authority_key = junk(), AddAuthority),
        ("another's key", &|material| material.authority_key.clone_from(&other.authority_key), AddAuthority),
        ("no certificate", &|material| material.certificate.clear(), RenewLeaf),
        ("half a certificate", &|material| material.certificate.truncate(200), RenewLeaf),
        ("another's certificate", &|material| material.certificate.clone_from(&other.certificate), RenewLeaf),
        ("the key of another", &|material| material.key.clone_from(&other.key), RenewLeaf),
        (
            "a certificate of nobody",
            &|material| {
                material.certificate = foreign.cert.pem().into();
                material.key = foreign.signing_key.serialize_pem().into();
            },
            RenewLeaf,
        ),
    ];
    for (name, corrupt, change) in cases {
        let (mut world, _) = begun();
        corrupt(world.material());
        let mut replica = Replica::new();
        world.settle(std::slice::from_mut(&mut replica));
        assert_eq!(world.changes, [change], "{name}");
        assert!(world.is_in_order(std::slice::from_ref(&replica)), "{name}");
    }
}

#[test]
fn a_secret_that_is_gone_or_junk_is_put_back() {
    let junk = Material { authorities: b"junk".to_vec(), ..Material::default() };
    for lost in [None, Some(Material::default()), Some(junk)] {
        let (mut world, mut replica) = begun();
        let before = world.secret.clone();
        world.write(lost);
        world.settle(std::slice::from_mut(&mut replica));
        assert_eq!(world.changes, [Restore]);
        assert_eq!(world.secret, before);
        assert!(world.is_in_order(&[replica]));
    }
}

#[test]
fn what_has_ended_is_not_put_back() {
    let (mut world, mut replica) = begun();
    world.write(None);
    world.now += 91 * DAY;
    world.settle(std::slice::from_mut(&mut replica));
    assert_eq!(world.changes, [Begin]);
    assert!(world.is_in_order(&[replica]));
}

#[test]
fn a_lost_leaf_of_a_new_authority_waits_while_the_old_one_is_shown() {
    let (mut world, mut replica) = both_due();
    replica.look(&mut world);
    world.material().certificate.clear();
    world.version += 1;
    replica.look(&mut world);
    replica.look(&mut world);
    assert_eq!(world.changes, [AddAuthority]);
    world.now += Duration::minutes(1);
    world.settle(std::slice::from_mut(&mut replica));
    assert_eq!(world.changes, [AddAuthority, RenewLeaf]);
    assert!(world.is_in_order(&[replica]));
}

/// The Secret that `podgate certs` and kubectl make has no authority key.
#[test]
fn a_certificate_that_somebody_else_made_is_taken_over() {
    let issued = certs::issue(&[]).unwrap();
    let mut world = World::new();
    world.now = OffsetDateTime::now_utc();
    world.secret = Some(Material {
        authorities: issued.authority.into(),
        authority_key: Vec::new(),
        certificate: issued.certificate.into(),
        key: issued.key.into(),
    });
    let before = world.holdings();
    world.registrations[0] = Registration::Present(vec![before.bundle()]);
    let mut replica = Replica::new();
    world.settle(std::slice::from_mut(&mut replica));
    assert_eq!(world.changes, [AddAuthority]);
    assert_eq!(world.holdings().material.certificate, before.material.certificate);
    assert!(world.is_in_order(&[replica]));
}

#[test]
fn a_clock_that_is_ahead_does_not_make_the_others_show_what_is_not_valid_yet() {
    let (mut world, first) = begun();
    let mut replicas = [first, Replica::ahead(61 * DAY), Replica::ahead(-DAY)];
    world.settle(&mut replicas);
    // It renewed what is due by its clock, once, and nobody undoes that.
    assert_eq!(world.changes, [RenewLeaf]);
    world.now += Duration::minutes(1);
    assert!(replicas[0].is_trusted_by(&world.bundles()[0], world.now));
    let starts = world.holdings().server.unwrap().validity().starts;
    assert_eq!(replicas[0].look(&mut world), Some(starts));
    // In time, it shows the new one.
    world.now = starts;
    assert!(replicas[0].decide(&world).serve.is_some());
    assert_eq!(world.changes.len(), 1);
}

#[test]
fn a_clock_that_is_behind_shows_what_there_is() {
    let (mut world, _) = begun();
    let mut replica = Replica::ahead(-100 * DAY);
    replica.look(&mut world);
    assert!(replica.shown.is_some());
    assert_eq!(world.changes, []);
}

#[test]
fn there_is_time_for_every_leaf() {
    assert!(Lifetimes::new(30 * DAY, 10 * DAY).is_ok());
    assert!(Lifetimes::new(30 * DAY - Duration::SECOND, 10 * DAY).is_err());
    assert!(Lifetimes::new(DAY, Duration::SECOND).is_err());
    assert!(Lifetimes::new(Duration::MAX, Duration::MAX).is_err());
}

#[test]
fn keys_are_not_logged() {
    let (world, _) = begun();
    assert_eq!(format!("{:?}", world.secret.unwrap()), "Material { .. }");
}

#[test]
fn what_is_issued_is_as_readable_as_any_pem() {
    let (mut world, _) = begun();
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&world.material().authorities).collect();
    assert_eq!(chain.len(), 1);
    // What another tool wrote differently is published as the same bytes by every replica.
    let crlf = String::from_utf8(world.material().authorities.clone()).unwrap().replace('\n', "\r\n");
    let before = world.bundles();
    world.material().authorities = format!("# a comment\n{crlf}").into();
    world.settle(&mut [Replica::new()]);
    assert_eq!(world.bundles(), before);
    assert_eq!(world.changes, []);
}
