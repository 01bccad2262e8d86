//! Writes the inputs that fuzzing starts from into `corpus/`: the cases, the recorded reviews and
//! the examples, and the images, quantities and configurations in them.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use serde_json::value::RawValue;

/// Longer inputs only slow the fuzzer down; what they are about, `tests/cases.rs` tries.
const LENGTH_MAX: usize = 64 << 10;

#[derive(Default)]
struct Seeds {
    reviews: BTreeSet<Vec<u8>>,
    images: BTreeSet<Vec<u8>>,
    quantities: BTreeSet<Vec<u8>>,
    configurations: BTreeSet<Vec<u8>>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let root = fuzz.join("..");
    let mut seeds = Seeds::default();
    for path in files(&root.join("tests/cases"), "json")? {
        seeds.add_case(&fs::read_to_string(&path)?).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    for folder in ["tests/reviews/mutate", "tests/reviews/validate", "examples/reviews"] {
        for path in files(&root.join(folder), "json")? {
            seeds.add_review(fs::read(path)?);
        }
    }
    let configurations = files(&root.join("examples/configurations"), "yaml")?;
    for path in [root.join("src/config/default.yaml"), fuzz.join("fuzz_targets/everything.yaml")] {
        seeds.configurations.insert(fs::read(path)?);
    }
    for path in configurations {
        seeds.configurations.insert(fs::read(path)?);
    }
    write(&fuzz.join("corpus/review"), seeds.reviews)?;
    write(&fuzz.join("corpus/image_reference"), seeds.images)?;
    write(&fuzz.join("corpus/quantity"), seeds.quantities)?;
    write(&fuzz.join("corpus/configuration"), seeds.configurations)
}

impl Seeds {
    fn add_case(&mut self, text: &str) -> Result<(), Box<dyn Error>> {
        let case: Value = serde_json::from_str(text)?;
        match &case["config"] {
            Value::Null => {}
            Value::String(yaml) => _ = self.configurations.insert(yaml.clone().into_bytes()),
            // JSON is YAML.
            json => _ = self.configurations.insert(json.to_string().into_bytes()),
        }
        if let Some(body) = case["raw_body"].as_str() {
            let body = if case["raw_body_encoding"] == "base64" { STANDARD.decode(body)? } else { body.into() };
            self.add_review(body);
        }
        // Byte for byte: the order of members matters to who reads it.
        let members: std::collections::HashMap<String, &RawValue> = serde_json::from_str(text)?;
        if let Some(review) = members.get("request") {
            self.add_review(review.get().into());
        }
        Ok(())
    }

    fn add_review(&mut self, body: Vec<u8>) {
        if let Ok(review) = serde_json::from_slice(&body) {
            self.add_values(&review);
        }
        if body.len() <= LENGTH_MAX {
            self.reviews.insert(body);
        }
    }

    /// The images and quantities anywhere in a value.
    fn add_values(&mut self, value: &Value) {
        let Value::Object(members) = value else {
            return value.as_array().into_iter().flatten().for_each(|element| self.add_values(element));
        };
        for (key, value) in members {
            match (key.as_str(), value) {
                ("image" | "reference", Value::String(image)) => _ = self.images.insert(image.clone().into()),
                ("cpu" | "memory", Value::String(quantity)) => _ = self.quantities.insert(quantity.clone().into()),
                _ => self.add_values(value),
            }
        }
    }
}

fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let paths: Result<Vec<PathBuf>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    Ok(paths?.into_iter().filter(|path| path.extension().is_some_and(|found| found == extension)).collect())
}

fn write(folder: &Path, seeds: BTreeSet<Vec<u8>>) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(folder)?;
    println!("{}: {} seeds", folder.display(), seeds.len());
    for (number, seed) in seeds.into_iter().enumerate() {
        fs::write(folder.join(format!("seed-{number:03}")), seed)?;
    }
    Ok(())
}
