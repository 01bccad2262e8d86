//! What each stage of an answer costs, beside what a webhook pays first that decodes all of a review.
//! `make bench-pipeline`.

#![allow(clippy::expect_used, reason = "a benchmark that cannot go on has failed")]
#![allow(missing_docs, reason = "criterion's macros make functions without them")]

mod reviews;

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use kube::core::DynamicObject;
use kube::core::admission::AdmissionReview;
use podgate::admission::{self, Webhook};
use podgate::pod::SpecText;
use podgate::policy::{Candidate, Policies};
use podgate::review::{self, Requested, Response, Review};
use serde_json::Value;

criterion_main!(benches);
criterion_group! {
    name = benches;
    config = Criterion::default().without_plots().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    targets = stages
}

fn stages(criterion: &mut Criterion) {
    let (policies, today) = (reviews::policies(), reviews::today());
    for case in reviews::cases() {
        let mut group = criterion.benchmark_group(format!("{} {}", case.path, case.name));
        group.throughput(Throughput::Bytes(case.body.len() as u64));
        let body = case.body.as_slice();
        let review = review::read(body).expect("a review");
        let examined = admission::examine(&policies, case.webhook, body, today).expect("a pod");
        let response = Response {
            uid: &review.uid,
            denial: None,
            patch: examined.patch,
            warnings: Vec::new(),
            audit_annotations: Vec::new(),
        };
        group.bench_function("decode", |bencher| bencher.iter(|| review::read(black_box(body)).is_ok()));
        group.bench_function("judge", |bencher| bencher.iter(|| judge(&policies, case.webhook, black_box(&review))));
        group.bench_function("encode", |bencher| bencher.iter(|| black_box(&response).to_json()));
        group.bench_function("answer", |bencher| {
            bencher.iter(|| admission::answer(&policies, case.webhook, black_box(body), today));
        });
        group.bench_function("serde_json::Value", |bencher| {
            bencher.iter(|| serde_json::from_slice::<Value>(black_box(body)).expect("JSON"));
        });
        group.bench_function("kube::AdmissionReview", |bencher| {
            let read = |body| serde_json::from_slice::<AdmissionReview<DynamicObject>>(body);
            bencher.iter(|| read(black_box(body)).expect("a review"));
        });
        group.finish();
    }
}

/// What the webhook asks of the policies, of a review of a pod without an old one; how much there is to be told.
fn judge(policies: &Policies, webhook: Webhook, review: &Review<'_>) -> usize {
    let Ok(Requested::Pod { object, .. }) = &review.requested else { panic!("a pod") };
    let candidate = Candidate {
        labels: &object.metadata.labels,
        spec: object.spec.as_ref().expect("a spec"),
        text: SpecText::new(review.text, "object", ""),
    };
    let policies = policies.in_force(review.requester(reviews::today())).expect("nobody is excluded");
    match webhook {
        Webhook::Mutate => {
            let pod = policies.with_sidecars(&candidate);
            let mutated = policies.mutate_pod(&pod);
            mutated.map_or(0, |mutated| mutated.patch.len()) + policies.deny_early(&pod, None).len()
        }
        Webhook::Validate => policies.validate_pod(&policies.as_it_is(&candidate), None).len(),
    }
}
