use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::*;

/// Another settings type than the agent's.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Garden {
    beds: Beds,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Beds {
    width: Option<u64>,
    share: Option<f64>,
    plants: Vec<String>,
}

fn format() -> ConfigFormat<Garden> {
    ConfigFormat::new("Garden").with_alternatives(&[("beds.share", "beds.width")]).with_text_check(
        |path, text| (path == "each of beds.plants" && text.is_empty()).then(|| "needs a name".to_owned()),
    )
}

#[test]
fn layers_merge_key_by_key_and_know_their_origins() {
    let format = format();
    let mut layers = Layers::new(&format);

    layers.put(format.parse("[beds]\nwidth = 1\nplants = [\"a\"]\n", "one").unwrap());
    layers.put_appending(format.parse("\n[beds]\nplants = [\"b\"]\n", "two").unwrap(), "beds.plants");

    let plants = vec!["a".to_owned(), "b".to_owned()];
    assert_eq!(layers.settings().unwrap().beds, Beds { width: Some(1), share: None, plants });
    assert_eq!(layers.origins.source("beds.plants"), "one:3, two:3");
    assert_eq!(layers.origins.set_by("beds.width"), "beds.width in one:2");
}

#[test]
fn a_key_resets_its_alternative_of_a_lower_layer() {
    let format = format();
    let mut layers = Layers::new(&format);

    layers.put(format.parse("beds.width = 1\n", "one").unwrap());
    layers.put(format.parse("beds.share = 0.5\n", "two").unwrap());

    assert_eq!(layers.settings().unwrap().beds, Beds { share: Some(0.5), ..Beds::default() });
    assert_eq!(layers.origins.source("beds.width"), "default");
}

#[test]
fn all_mistakes_are_reported_with_their_lines() {
    let error =
        format().parse("[beds]\nwidht = 1\nshare = \"x\"\nplants = [\"\"]\n[bed]\n", "f").unwrap_err();

    assert_eq!(
        error.to_string().lines().collect::<Vec<_>>(),
        [
            "f:2: unknown key \"widht\" in [beds]; did you mean \"width\"?",
            "f:3: beds.share must be a number, not a string",
            "f:4: each of beds.plants needs a name",
            "f:5: unknown section [bed]; did you mean [beds]?",
        ]
    );
}

#[test]
fn resolved_settings_are_in_the_order_of_declaration() {
    let format = format();
    let mut layers = Layers::new(&format);
    layers.put(format.parse("beds.width = 1\n", "one").unwrap());

    let resolved =
        resolved_settings(&layers.settings().unwrap(), &layers.origins, |key| key != "beds.plants");

    let lines: Vec<String> = resolved.iter().map(ResolvedSetting::to_string).collect();
    assert_eq!(
        lines,
        ["beds.width = 1  # one:1", "# beds.share is not set", "beds.plants = []  # default; not used yet"]
    );
}
