//! A quantity: an amount, written as people do, is the same amount.

#![no_main]

use libfuzzer_sys::fuzz_target;
use podgate::pod::{Amount, Quantity, ResourceName};

fuzz_target!(|text: &str| {
    // As a JSON value, which may be a number too.
    let _ = serde_json::from_str::<Quantity<'_>>(text);
    let quantity = match Quantity::parse(text) {
        Ok(quantity) => quantity,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert_eq!(quantity.as_str(), text);
    assert!(!(quantity.is_zero() && quantity.is_positive()));
    for name in ResourceName::ALL {
        let amount = Amount::of(name, &quantity);
        let _ = amount.plus(amount).to_string();
        let shown = amount.to_string();
        let again = Quantity::parse(shown.as_str()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again.nano(), quantity.nano(), "{shown}");
    }
});
