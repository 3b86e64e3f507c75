//! Properties of the source itself. One rule when one mistake has been made twice.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

const LINE_WIDTH_MAX: usize = 100;
const FILE_LINES_MAX: usize = 1500;
/// Files that import from each other in a circle, at most; children and re-exports count.
const CIRCLE_FILES_MAX: usize = 8;

/// The crate graph, leaf first. A new arrow is a design decision, so it fails here first.
const ARROWS: &[(&str, &[&str])] = &[
    ("blockio", &[]),
    ("ftl", &["blockio"]),
    ("tier", &["blockio", "ftl"]),
    ("ssd", &["blockio", "ftl", "tier"]),
    ("workload", &["blockio"]),
    ("results", &["blockio"]),
    ("opal", &["blockio"]),
    ("device", &["blockio", "opal"]),
    ("status", &["blockio"]),
    ("export", &["blockio", "device", "status"]),
    ("live", &["blockio", "device", "ftl", "status"]),
    ("lab", &["blockio", "ssd", "workload", "results"]),
    ("real", &["blockio", "lab", "results", "ssd", "workload"]),
    ("report", &["blockio", "results"]),
    ("study", &["blockio", "lab", "results", "ssd", "workload"]),
    ("server", &["blockio", "export", "live", "lab", "report", "status"]),
    (
        "cli",
        &[
            "blockio", "export", "live", "lab", "real", "report", "server", "status", "study",
            "tier",
        ],
    ),
    ("python", &["blockio", "lab", "live", "real", "report", "status", "study"]),
];

/// Arrows of tests alone: the pace of replies is tested with a drive of the catalogue, read caches
/// with a trace.
const TEST_ARROWS: &[(&str, &str)] = &[("export", "ssd"), ("tier", "workload")];

/// Crates in which nothing may read the machine's clock, entropy or order.
const DETERMINISTIC: [&str; 6] = ["blockio", "ftl", "tier", "ssd", "workload", "results"];

/// Words that say nothing about what a file holds.
const BANNED_FILE_WORDS: [&str; 10] =
    ["util", "utils", "helper", "helpers", "common", "misc", "base", "manager", "handler", "mod"];

/// Folders that are not the project's own, but in `src/`.
const FOREIGN_FOLDERS: [&str; 4] = ["target", "runs", "node_modules", "vendor"];

#[test]
fn sources_are_tidy() {
    let mut faults = Vec::new();
    for path in files(root(), &["rs"]) {
        let (text, shown) = (read(&path), shown(&path));
        if !text.starts_with("//!") {
            faults.push(format!("{shown}:1: no module doc: say what this file is for"));
        }
        if text.lines().count() > FILE_LINES_MAX {
            faults.push(format!("{shown}: over {FILE_LINES_MAX} lines: split it"));
        }
        for (index, line) in text.lines().enumerate() {
            let at = format!("{shown}:{}", index + 1);
            // A line of a text literal stays as long as it is.
            let literal = line.contains("https://") || line.ends_with("\\n\\");
            if line.chars().count() > LINE_WIDTH_MAX && !literal {
                faults.push(format!("{at}: over {LINE_WIDTH_MAX} columns"));
            }
            if line.contains(concat!("FIX", "ME")) {
                faults.push(format!("{at}: leftover, resolve before merge"));
            }
        }
    }
    report(&faults);
}

/// Words that a doc comment does not open with: they make a riddle of what should be a name.
const RIDDLES: [&str; 19] = [
    "What", "Whether", "How", "Where", "It", "Which", "Who", "Whose", "Why", "When", "Those",
    "These", "That", "They", "Such", "See", "Does so", "Do so", "The same",
];

#[test]
fn doc_comments_open_with_what_a_thing_is() {
    let mut faults = Vec::new();
    for path in files(root(), &["rs"]) {
        let text = read(&path);
        let mut was_comment = false;
        for (index, line) in text.lines().enumerate() {
            let line = line.trim_start();
            let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
            let riddle = comment.and_then(|text| RIDDLES.iter().find(|it| opens_with(text, it)));
            if let Some(riddle) = riddle.filter(|_| !was_comment) {
                faults.push(format!(
                    "{}:{}: opens with {riddle:?}: name the thing, or say what it does",
                    shown(&path),
                    index + 1,
                ));
            }
            was_comment = comment.is_some();
        }
    }
    report(&faults);
}

fn opens_with(text: &str, words: &str) -> bool {
    let rest = text.trim_start().strip_prefix(words);
    rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

/// Pronouns that hide the client, the thread, the host, the caller, the operator or the owner.
const PRONOUNS: [&str; 4] = ["whoever", "nobody", "somebody", "anybody"];

/// Ends of participles and leftovers; a type of one such word says what was done, and not to what.
const PARTICIPLE_ENDS: [&str; 14] = [
    "ed", "en", "ept", "old", "elt", "ought", "aught", "orn", "wn", "id", "ost", "eft", "ent",
    "ound",
];
/// Participles and leftovers without such an end.
const PARTICIPLES: [&str; 11] =
    ["Rest", "Begun", "Read", "Put", "Met", "Made", "Done", "Gone", "Held", "Shut", "Cut"];
/// Nouns with such an end.
const NOUNS: &str = "\
    Accent Agent Assignment Attachment Background Bed Bid Bound Children Citizen Client \
    Component Content Cost Crown Document Down Element Embed Environment Even Event Exponent \
    Extent Feed Fold Fragment Golden Grid Ground Hold Horn Host Increment Invalid Led \
    Management Mid Moment Need Nqnid Open Own Parent Payment Pen Percent Pid Placement Post Red \
    Replacement Round Sched Screen Seed Segment Shed Sound Speed Statement Then Threshold Token \
    Tournament Town Uuid Valid Void";

#[test]
fn names_and_comments_say_who_and_what() {
    let crates = ARROWS.iter().map(|(name, _)| format!("crates/{name}"));
    let mut faults = Vec::new();
    for name in crates.chain(["xtask".into(), "xtask/figures".into()]) {
        for (module, text) in sources_of(&root().join(&name).join("src")) {
            for line in text.lines() {
                faults.extend(vague(line).map(|fault| format!("{name}: {module}: {fault}")));
            }
        }
    }
    report(&faults);
    assert!(PRONOUNS.iter().all(|it| vague(&format!("    // {it} waits.")).is_some()));
    assert!(vague("pub struct Kept {").is_some());
}

/// Returns the fault of a line that has a pronoun, or names a type by a bare participle.
fn vague(line: &str) -> Option<String> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let words: Vec<&str> = line.split(|c| !is_part(c)).filter(|it| !it.is_empty()).collect();
    if words.iter().any(|it| PRONOUNS.contains(&it.to_lowercase().as_str())) {
        return Some(format!("name who it is: {}", line.trim()));
    }
    let is_type = |pair: &[&str]| ["struct", "enum", "trait", "type"].contains(&pair[0]);
    let is_bare = |name: &str| {
        let is_one_word = name.chars().skip(1).all(|c| c.is_ascii_lowercase());
        let is_participle = PARTICIPLE_ENDS.iter().any(|end| name.ends_with(end));
        let is_noun = NOUNS.split(' ').any(|noun| noun == name);
        is_one_word && !is_noun && (is_participle || PARTICIPLES.contains(&name))
    };
    let is_code = !line.trim_start().starts_with("//");
    let bare = words.windows(2).find(|pair| is_code && is_type(pair) && is_bare(pair[1]))?;
    Some(format!("add its noun to the name of the type {}", bare[1]))
}

/// Methods that lie elsewhere: a drive is made and opened from its folder.
const METHODS_ELSEWHERE: [(&str, &str, &str); 3] = [
    ("live", "Drive", "volume/folder"),
    ("live", "Drive", "volume/listed_dies"),
    ("live", "Drive", "engine/log/recovery/buffered"),
];

#[test]
fn methods_of_a_type_lie_in_its_file_or_folder() {
    let (mut faults, mut elsewhere) = (Vec::new(), BTreeSet::new());
    for (name, _) in ARROWS {
        let modules = sources_of(&root().join("crates").join(name).join("src"));
        let types = |of: fn(&str) -> Option<&str>| {
            let found =
                modules.iter().map(move |(at, text)| text.lines().map(move |it| (of(it), at)));
            found.flatten().filter_map(|(of_type, at)| Some((of_type?.to_owned(), at.as_str())))
        };
        let mut homes = BTreeMap::<String, Vec<&str>>::new();
        types(declared).for_each(|(of_type, at)| homes.entry(of_type).or_default().push(at));
        for (of_type, at) in types(implemented) {
            let is_home = |home: &&str| at == *home || at.starts_with(&joined(home, ""));
            let is_at_home = homes.get(&of_type).is_none_or(|it| it.iter().any(is_home));
            match METHODS_ELSEWHERE.iter().find(|it| **it == (*name, of_type.as_str(), at)) {
                Some(exception) => drop(elsewhere.insert(exception)),
                None if is_at_home => {}
                None => faults.push(format!("{name}: methods of {of_type} in {at}")),
            }
        }
    }
    report(&faults);
    assert_eq!(elsewhere.len(), METHODS_ELSEWHERE.len(), "an exception is needed no more");
}

/// Methods of the translation layer that one of its owners sees, at most.
const FTL_METHODS_MAX: usize = 30;

#[test]
fn each_owner_of_the_translation_layer_sees_few_of_its_methods() {
    let mut methods = BTreeMap::<String, usize>::new();
    for (_, text) in sources_of(&root().join("crates/ftl/src")) {
        let mut owner = "";
        for line in text.lines() {
            if line.starts_with("impl") || line == "}" {
                let implemented = line.trim_start_matches("impl<C> ").trim_start_matches("impl ");
                owner = implemented.strip_suffix(" {").unwrap_or_default();
            }
            let is_public =
                line.starts_with("    pub fn ") || line.starts_with("    pub const fn ");
            if is_public && owner.starts_with("Ftl") {
                *methods.entry(owner.to_owned()).or_default() += 1;
            }
        }
    }
    let all = methods.remove("Ftl<C>").expect("methods of all owners");
    for owner in ["Ftl", "Ftl<Debt>"] {
        let seen = all + methods.remove(owner).expect("methods of one owner");
        assert!(seen <= FTL_METHODS_MAX, "the owner of {owner} sees {seen}");
    }
    assert_eq!(methods, BTreeMap::new(), "methods of another owner");
}

/// Name of the type that a line declares.
fn declared(line: &str) -> Option<&str> {
    let words: Vec<&str> = line.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let at = words.iter().position(|it| ["struct", "enum", "union"].contains(it))?;
    words.get(at + 1).copied().filter(|_| !line.trim_start().starts_with("//"))
}

/// Name of the type of which a line begins to implement methods that are of no trait.
fn implemented(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl").filter(|rest| !rest.contains(" for "))?;
    let generics = rest.strip_prefix('<').map_or(Some(0), |rest| Some(rest.find("> ")? + 1))?;
    rest[generics..].split(|c: char| !c.is_alphanumeric() && c != '_').find(|it| !it.is_empty())
}

#[test]
fn file_names_are_nouns() {
    let mut faults = Vec::new();
    for path in files(root(), &["rs"]) {
        let stem = path.file_stem().expect("a file has a name").to_string_lossy();
        if stem.split('_').any(|word| BANNED_FILE_WORDS.contains(&word)) {
            faults.push(format!("{}: name it after what it holds", shown(&path)));
        }
    }
    report(&faults);
}

#[test]
fn every_source_file_is_compiled() {
    let mut faults = Vec::new();
    for path in files(root(), &["rs"]) {
        let folder = path.parent().expect("a file lies in a folder");
        let name = path.file_stem().expect("a file has a name").to_string_lossy();
        let is_module = shown(folder).contains("src") && name != "lib" && name != "main";
        let parents = [folder.with_extension("rs"), folder.join("lib.rs"), folder.join("main.rs")];
        let declaration = format!("mod {name};");
        let declares = |parent: &PathBuf| parent.exists() && read(parent).contains(&declaration);
        if is_module && !parents.iter().any(declares) {
            faults.push(format!("{}: no module says `{declaration}`", shown(&path)));
        }
    }
    report(&faults);
}

#[test]
fn crate_graph_has_only_the_agreed_arrows() {
    let crates: BTreeSet<&str> = ARROWS.iter().map(|(name, _)| *name).collect();
    let mut folders = BTreeSet::new();
    for entry in fs::read_dir(root().join("crates")).expect("crates/ is readable") {
        folders.insert(entry.expect("an entry").file_name().to_string_lossy().into_owned());
    }
    assert_eq!(folders, crates.iter().map(ToString::to_string).collect());
    for (name, arrows) in ARROWS {
        let manifest = toml_of(&root().join("crates").join(name).join("Cargo.toml"));
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let Some(dependencies) = manifest.get(kind).and_then(Value::as_table) else { continue };
            let ours = dependencies.keys().map(String::as_str).filter(|name| crates.contains(name));
            for other in ours {
                let is_test = kind == "dev-dependencies" && TEST_ARROWS.contains(&(*name, other));
                assert!(is_test || arrows.contains(&other), "{name} -> {other} in [{kind}]");
            }
        }
    }
}

/// Layers of `lab`, see [`layers_of`].
const LAYERS_OF_LAB: &[&[&str]] = &[
    &["error", "pool", "rate"],
    &["replay", "application", "wanted"],
    &["target/hosts", "target/nbd", "target/purge_method", "target/system"],
    &["target/access", "target/address"],
    &["target/identity"],
    &["target", "plan"],
    &["expression", "progress"],
    &["subject"],
    &["library", "driver"],
    &["order", "repeats"],
    &["schedule"],
    &["driver/mock", "driver/model"],
    &["runner", "driver/contract"],
    &["runs", "fio_report"],
    &["vdbench_report"],
    &["import"],
];

#[test]
fn files_of_lab_import_from_their_own_and_lower_layers_only() {
    report(&layers_of("lab", LAYERS_OF_LAB));
    let turned: Vec<&[&str]> = LAYERS_OF_LAB.iter().rev().copied().collect();
    assert!(!layers_of("lab", &turned).is_empty(), "imports were not seen");
}

/// Layers of `real`, see [`layers_of`].
const LAYERS_OF_REAL: &[&[&str]] = &[
    &["tools"],
    &["tuning", "guard"],
    &["target"],
    &["environment"],
    &["sites"],
    &["interference", "thermometer", "recorded", "lateness"],
    &["fio"],
    &["doctor"],
    &["drivers"],
    &["review"],
];

#[test]
fn files_of_real_import_from_their_own_and_lower_layers_only() {
    report(&layers_of("real", LAYERS_OF_REAL));
    let turned: Vec<&[&str]> = LAYERS_OF_REAL.iter().rev().copied().collect();
    assert!(!layers_of("real", &turned).is_empty(), "imports were not seen");
}

/// Layers of `live`, see [`layers_of`].
const LAYERS_OF_LIVE: &[&[&str]] = &[
    &["lock", "mutants", "host_death"],
    &["medium"],
    &["fault_injection", "format"],
    &["error", "description"],
    // From what is written up to who writes it.
    &["engine/core/bad_places"],
    &["engine/core/program", "engine/dies/signature", "engine/dies/witness"],
    &["engine/dies", "engine/core/open_row", "engine/core/write_buffer"],
    &[
        "engine/dies/header_copies",
        "engine/store",
        "engine/core/completed_rows",
        "engine/core/lost",
    ],
    &["engine/log/checkpoint", "engine/dies/erasure", "engine/dies/gathering"],
    &["engine/dies/headroom", "engine/store/victim_unit"],
    &["engine/drive/creation", "engine/core"],
    &["engine/log/journal", "engine/log/replay"],
    &["engine/drive"],
    &["engine"],
    &["volume"],
    &["simulation"],
];

#[test]
fn files_of_live_import_from_their_own_and_lower_layers_only() {
    report(&layers_of("live", LAYERS_OF_LIVE));
    let turned: Vec<&[&str]> = LAYERS_OF_LIVE.iter().rev().copied().collect();
    assert!(!layers_of("live", &turned).is_empty(), "imports were not seen");
}

/// Files of `live` that decide: they know what lies where and neither read nor write it.
const DECIDING: [&str; 8] = [
    "core",
    "core/completed_rows",
    "core/condemned",
    "core/left_out",
    "core/lost",
    "core/open_row",
    "core/program",
    "core/size",
];

#[test]
fn the_core_of_a_live_drive_touches_no_medium() {
    let touches = |name: &str| {
        let path = root().join(format!("crates/live/src/engine/{name}.rs"));
        let text = fs::read_to_string(&path).expect("a file of the engine");
        ["Medium", "dies::", "Store,", "&Store", "std::io", "std::fs"]
            .iter()
            .any(|word| text.contains(word))
    };
    for name in DECIDING {
        assert!(!touches(name), "engine/{name}.rs decides, and leaves media to others");
    }
    assert!(touches("dies") && touches("drive/scrub"), "what touches media was not seen");
}

/// Layers of `server`, see [`layers_of`].
const LAYERS_OF_SERVER: &[&[&str]] = &[
    &["activation", "cleanup", "failure", "lateness", "log", "monitor", "recording", "signals"],
    &["temperature", "mount"],
    &["drive_service"],
    &["web", "idle"],
    &["pages", "front_ends"],
    &["config"],
    &["checks", "fault_injection"],
    &["served_drive"],
    &["daemon"],
];

#[test]
fn files_of_server_import_from_their_own_and_lower_layers_only() {
    report(&layers_of("server", LAYERS_OF_SERVER));
    let turned: Vec<&[&str]> = LAYERS_OF_SERVER.iter().rev().copied().collect();
    assert!(!layers_of("server", &turned).is_empty(), "imports were not seen");
}

#[test]
fn no_circle_of_imports_is_large() {
    let crates = ARROWS.iter().map(|(name, _)| *name).chain(["../xtask"]);
    let circles: Vec<BTreeSet<String>> = crates.flat_map(circles_of).collect();
    assert!(circles.iter().any(|it| it.len() > 4), "imports of children were not seen");
    let large = circles.iter().filter(|it| it.len() > CIRCLE_FILES_MAX);
    report(&large.map(|it| format!("a circle of {}: {it:?}", it.len())).collect::<Vec<_>>());
}

/// Sets of files of a crate each of which imports from every other, if not directly, outside tests.
fn circles_of(name: &str) -> BTreeSet<BTreeSet<String>> {
    let modules = modules_of(&root().join("crates").join(name).join("src"));
    let imports: BTreeMap<&str, Vec<Vec<String>>> =
        modules.iter().map(|(at, text)| (at.as_str(), imports_of(at, text, &modules))).collect();
    let edges = |(module, paths): (&&str, &Vec<Vec<String>>)| {
        let origins = paths.iter().map(|path| origin(path, &imports, 0));
        ((*module).to_owned(), origins.filter(|other| other != module).collect())
    };
    let graph: BTreeMap<String, BTreeSet<String>> =
        imports.iter().filter(|(module, _)| !module.is_empty()).map(edges).collect();
    let from: BTreeMap<&String, BTreeSet<String>> =
        graph.keys().map(|module| (module, reached(module, &graph))).collect();
    let circle = |module: &String| -> BTreeSet<String> {
        let is_back = |other: &&String| from.get(*other).is_some_and(|it| it.contains(module));
        from[module].iter().filter(is_back).map(|it| format!("{name}/{it}")).collect()
    };
    graph.keys().map(circle).filter(|it| it.len() > 1).collect()
}

/// Modules that `module` imports from, directly or not.
fn reached(module: &str, graph: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let (mut found, mut open) = (BTreeSet::new(), vec![module.to_owned()]);
    while let Some(next) = open.pop() {
        let others = graph.get(&next).into_iter().flatten();
        open.extend(others.filter(|it| found.insert((*it).clone())).cloned());
    }
    found
}

/// Imports of the crate named `name` that break the order of its layers, outside its tests.
///
/// A layer is a module with all below it but those that are layers themselves: `real/hosts` is none
/// of `real`. `order` has the layers from low to high. A file may import from its own layer and
/// from those of lower rows; layers of one row know nothing of each other. The root of the crate is
/// in no layer: what it re-exports counts as imported from where it is.
fn layers_of(name: &str, order: &[&[&str]]) -> Vec<String> {
    let modules = modules_of(&root().join("crates").join(name).join("src"));
    let imports: BTreeMap<&str, Vec<Vec<String>>> =
        modules.iter().map(|(at, text)| (at.as_str(), imports_of(at, text, &modules))).collect();
    let rows = || {
        order.iter().enumerate().flat_map(|(row, layers)| layers.iter().map(move |it| (row, *it)))
    };
    let layer_of = |module: &str| {
        let holds = |layer: &str| {
            module.strip_prefix(layer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        rows().filter(|(_, layer)| holds(layer)).max_by_key(|(_, layer)| layer.len())
    };
    let mut faults: Vec<String> = rows()
        .filter(|(_, layer)| !modules.contains_key(*layer))
        .map(|(_, layer)| format!("{name}: there is no layer {layer}"))
        .collect();
    for (module, paths) in imports.iter().filter(|(module, _)| !module.is_empty()) {
        let Some((row, layer)) = layer_of(module) else {
            faults.push(format!("{name}: {module} is in no layer"));
            continue;
        };
        for path in paths {
            let origin = origin(path, &imports, 0);
            if let Some((other_row, other)) = layer_of(&origin)
                && other != layer
                && other_row >= row
            {
                faults.push(format!("{name}: {module} in {layer} imports {origin} of {other}"));
            }
        }
    }
    faults
}

/// Modules as of [`sources_of`], without comments.
fn modules_of(folder: &Path) -> BTreeMap<String, String> {
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    let code = |text: &str| text.lines().filter(is_code).flat_map(|it| [it, "\n"]).collect();
    sources_of(folder).into_iter().map(|(at, text)| (at, code(&text))).collect()
}

/// Modules below `folder` with their texts, tests left out, by path: `real/fio`, the root empty.
fn sources_of(folder: &Path) -> BTreeMap<String, String> {
    let mut modules = BTreeMap::new();
    let mut tests = Vec::new();
    for file in files(folder, &["rs"]) {
        let at = file.strip_prefix(folder).expect("a file of the folder").with_extension("");
        let at = at.display().to_string();
        let at = if ["lib", "main"].contains(&at.as_str()) { String::new() } else { at };
        let (text, of_tests) = without_tests(&read(&file));
        tests.extend(of_tests.iter().map(|child| joined(&at, child)));
        modules.insert(at, text);
    }
    let is_test =
        |at: &str| tests.iter().any(|test| at == test || at.starts_with(&format!("{test}/")));
    modules.retain(|at, _| !is_test(at));
    modules
}

fn joined(module: &str, child: &str) -> String {
    if module.is_empty() { child.to_owned() } else { format!("{module}/{child}") }
}

/// A source text without items for tests, and the names of its modules of tests.
///
/// An item ends at the first line of its own indentation that closes something.
fn without_tests(text: &str) -> (String, Vec<String>) {
    let (mut kept, mut tests) = (String::new(), Vec::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim_start() != "#[cfg(test)]" {
            kept.push_str(line);
            kept.push('\n');
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let ends = |line: &str| {
            let is_outer = line.len() - line.trim_start().len() == indent;
            is_outer
                && !line.trim_start().starts_with(['#', '/'])
                && line.ends_with([';', '}', ','])
        };
        for line in lines.by_ref() {
            let module = line.split_once("mod ").and_then(|(_, name)| name.strip_suffix(';'));
            tests.extend(module.map(str::to_owned));
            if ends(line) {
                break;
            }
        }
    }
    (kept, tests)
}

/// Paths of the crate's own items that the text of `module` names, as their segments from the root.
fn imports_of(module: &str, text: &str, modules: &BTreeMap<String, String>) -> Vec<Vec<String>> {
    let here: Vec<&str> = module.split('/').filter(|name| !name.is_empty()).collect();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let mut before = ' ';
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let word = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
        let after = &rest[word.len().max(first.len_utf8())..];
        if !word.is_empty() && after.starts_with("::") && before != ':' {
            let mut at: Vec<String> = here.iter().map(ToString::to_string).collect();
            let is_own = match word {
                "crate" => {
                    at.clear();
                    true
                }
                "super" => at.pop().is_some(),
                "self" => true,
                child => {
                    let is_child = modules.contains_key(&joined(module, child));
                    at.push(child.to_owned());
                    is_child
                }
            };
            if is_own {
                leaves(&after[2..], at, &mut found);
            }
        }
        before = word.chars().last().unwrap_or(first);
        rest = after;
    }
    found
}

/// Adds the paths of the tree of imports that `text` begins with, below `at`, to `found`.
fn leaves(text: &str, mut at: Vec<String>, found: &mut Vec<Vec<String>>) {
    if let Some(group) = text.strip_prefix('{') {
        let (mut depth, mut begin) = (0_u32, 0);
        for (index, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth > 0 => depth -= 1,
                ',' | '}' if depth == 0 => {
                    leaves(group[begin..index].trim_start(), at.clone(), found);
                    begin = index + 1;
                    if c == '}' {
                        return;
                    }
                }
                _ => {}
            }
        }
        return;
    }
    let word = &text[..text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len())];
    match word {
        "" => return,
        "self" => {}
        "super" => drop(at.pop()),
        name => at.push(name.to_owned()),
    }
    match text[word.len()..].strip_prefix("::") {
        Some(rest) => leaves(rest, at, found),
        None => found.push(at),
    }
}

/// The module that the item at `path` comes from, through modules that pass it on.
fn origin(path: &[String], imports: &BTreeMap<&str, Vec<Vec<String>>>, depth: u32) -> String {
    let module = (0..=path.len()).rev().map(|end| (end, path[..end].join("/")));
    let (end, module) = module
        .into_iter()
        .find(|(_, module)| imports.contains_key(module.as_str()))
        .expect("the root is a module");
    let passed_on = path.get(end).and_then(|name| {
        let of_module = imports[module.as_str()].iter();
        of_module.clone().find(|import| import.last() == Some(name) && import[..] != path[..=end])
    });
    match passed_on {
        Some(import) if depth < 8 => origin(import, imports, depth + 1),
        _ => module,
    }
}

#[test]
fn deterministic_crates_ban_clocks_threads_and_hash_maps() {
    for name in DETERMINISTIC {
        let text = read(&root().join("crates").join(name).join("src/lib.rs"));
        let ban = "\n#![deny(clippy::disallowed_methods, clippy::disallowed_types)]\n";
        assert!(text.contains(ban), "{name} does not opt in to the bans of clippy.toml");
    }
}

#[test]
fn every_number_of_a_drive_has_a_source() {
    let mut faults = Vec::new();
    for folder in ["drives", "xtask/figures/bench"] {
        for path in files(&root().join(folder), &["toml"]) {
            for (key, value) in toml_of(&path) {
                check_sources(&value, &format!("{}: [{key}]", shown(&path)), &mut faults);
            }
        }
    }
    report(&faults);
}

/// Every table below `value` that holds numbers says what kind they are and where they come from.
fn check_sources(value: &Value, place: &str, faults: &mut Vec<String>) {
    match value {
        Value::Array(values) => values.iter().for_each(|one| check_sources(one, place, faults)),
        Value::Table(table) => {
            let source = table.get("source").and_then(Value::as_str).unwrap_or_default();
            let kind = source.split(':').next().unwrap_or_default();
            let known = ["published", "derived", "estimated"].contains(&kind);
            if table.values().any(holds_numbers) && !known {
                faults.push(format!("{place}: source is {source:?}, begin with its kind"));
            }
            for (key, value) in table {
                check_sources(value, &format!("{place}.{key}"), faults);
            }
        }
        _ => {}
    }
}

fn holds_numbers(value: &Value) -> bool {
    match value {
        Value::Integer(_) | Value::Float(_) => true,
        Value::Array(values) => values.iter().any(holds_numbers),
        _ => false,
    }
}

#[test]
fn nothing_names_a_path_of_one_machine() {
    let places = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("../sha", "red")];
    let mut faults = Vec::new();
    for path in files(root(), &["rs", "md", "toml", "html", "js", "css", "json", "csv"]) {
        for (index, line) in read(&path).lines().enumerate() {
            if places.iter().any(|place| line.contains(place)) {
                faults.push(format!("{}:{}: {}", shown(&path), index + 1, line.trim()));
            }
        }
    }
    report(&faults);
}

#[test]
fn links_of_documents_resolve() {
    let mut faults = Vec::new();
    for path in files(root(), &["md"]) {
        let folder = path.parent().expect("a file lies in a folder");
        for (index, line) in prose(&read(&path)) {
            for target in links(&line) {
                let file = target.split('#').next().unwrap_or_default();
                if !file.is_empty() && !folder.join(file).exists() {
                    faults.push(format!("{}:{index}: {target} does not exist", shown(&path)));
                }
            }
        }
    }
    report(&faults);
}

#[test]
fn files_that_documents_name_exist() {
    let mut faults = Vec::new();
    for path in files(root(), &["md"]) {
        for (index, line) in prose(&read(&path)) {
            for name in line.split('`').skip(1).step_by(2).filter(|name| is_file_name(name)) {
                let known = [root().join(name), root().join("crates").join(name)];
                if !known.iter().any(|path| path.exists()) {
                    faults.push(format!("{}:{index}: {name} does not exist", shown(&path)));
                }
            }
        }
    }
    report(&faults);
}

/// Returns true if a piece of code in prose is the path of one source file, folder included.
fn is_file_name(text: &str) -> bool {
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    let source = [".rs", ".toml", ".csv"].iter().any(|end| text.ends_with(end));
    plain && source && text.contains('/') && !text.starts_with('.')
}

/// The numbered lines of a Markdown text that are not code.
fn prose(text: &str) -> Vec<(usize, String)> {
    let mut in_code = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            lines.push((index + 1, line.to_owned()));
        }
    }
    lines
}

/// Targets of the links of a line that lead to files of the project.
fn links(line: &str) -> Vec<String> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_work_that_is_cited_is_in_the_bibliography() {
    let bibliography = read(&root().join("docs/sources.md"));
    let mut faults = Vec::new();
    for path in files(root(), &["rs", "md", "toml"]) {
        for key in citations(&read(&path)) {
            if !bibliography.contains(&format!("**[{key}]**")) {
                faults.push(format!("{}: [{key}] is not in docs/sources.md", shown(&path)));
            }
        }
    }
    report(&faults);
}

/// Keys such as `desnoyers-2012` that stand in brackets.
fn citations(text: &str) -> BTreeSet<&str> {
    let mut keys = BTreeSet::new();
    for key in text.split('[').skip(1).filter_map(|rest| rest.split(']').next()) {
        let is_key = key.rsplit_once('-').is_some_and(|(name, year)| {
            let letters = name.chars().all(|char| char.is_ascii_lowercase() || char == '-');
            letters && !name.is_empty() && year.len() == 4 && year.parse::<u32>().is_ok()
        });
        if is_key {
            keys.insert(key);
        }
    }
    keys
}

#[test]
fn continuous_integration_runs_the_command_of_the_readme() {
    let command = "cargo xtask test";
    assert!(read(&root().join("README.md")).contains(&format!("\n{command}\n")));
    assert!(read(&root().join(".ci/run")).contains(&format!("\nexec {command}\n")));
}

#[test]
fn the_manifest_of_every_crate_opts_in_to_the_lints() {
    for path in files(root(), &["toml"]).iter().filter(|path| path.ends_with("Cargo.toml")) {
        let manifest = toml_of(path);
        if manifest.contains_key("package") {
            let lints = manifest.get("lints").and_then(|lints| lints.get("workspace"));
            assert_eq!(lints, Some(&Value::Boolean(true)), "{}", shown(path));
        }
    }
}

fn report(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask/ lies in the root")
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).expect("a file of the project").display().to_string()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("reading {}: {error}", path.display()))
}

fn toml_of(path: &Path) -> Table {
    read(path).parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The project's own files below `folder` with one of these extensions, in order.
fn files(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return found };
    for entry in entries {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("an entry has a name").to_string_lossy().into_owned();
        // What a link leads to is looked at where it lies.
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            let is_foreign = FOREIGN_FOLDERS.contains(&name.as_str()) && !folder.ends_with("src");
            if !is_foreign && name != ".git" {
                found.extend(files(&path, extensions));
            }
        } else if extensions.iter().any(|extension| path.extension() == Some(extension.as_ref())) {
            found.push(path);
        }
    }
    found.sort();
    found
}
