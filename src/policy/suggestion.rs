//! The name that was meant.

/// The least likeness, from 0 to 1, at which a name is taken for a misspelt one.
const LIKENESS_MIN: f64 = 0.8;

/// The nearest of the names that are known, and all of them; `noun` says what they are.
pub(crate) fn suggestion(name: &str, known: &[&str], noun: &str) -> String {
    let likeness = |candidate: &str| strsim::jaro_winkler(&name.to_lowercase(), &candidate.to_lowercase());
    let nearest = known
        .iter()
        .map(|candidate| (likeness(candidate), candidate))
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .max_by(|(one, _), (other, _)| one.total_cmp(other));
    match nearest {
        Some((_, candidate)) => format!("did you mean {candidate:?}? the {noun} are {}", known.join(", ")),
        None => format!("the {noun} are {}", known.join(", ")),
    }
}
