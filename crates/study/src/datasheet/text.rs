//! The text of a drive's file.

use std::fmt::Write as _;

use ssd::DriveSpec;

use super::Numbers;
use super::sheet::{Quantity, Sheet};

/// The file of the drive of `sheet`, like `class`.
pub(super) fn written(sheet: &Sheet<'_>, numbers: &Numbers, class: &DriveSpec) -> String {
    let mut text = head(sheet, numbers, class);
    text += &geometry(sheet, numbers, class);
    text += &nand(sheet, numbers, class);
    text += &controller(sheet, numbers, class);
    if let Some((read, write)) = numbers.link_mb_s {
        let source = sheet.quoted(Quantity::SequentialRead);
        let lines = format!("read_mb_s = {read}\nwrite_mb_s = {write}\n");
        text += &table("link", &lines, &format!("derived: {source}"));
    }
    text += &buffer(sheet, numbers, class);
    text += &relocation(numbers, class);
    text + &endurance(sheet)
}

fn head(sheet: &Sheet<'_>, numbers: &Numbers, class: &DriveSpec) -> String {
    let (device, like) = (sheet.device, &class.name);
    let tb = match sheet.capacity_gb {
        gb if gb < 1000.0 => format!("{gb} GB"),
        gb => format!("{} TB", gb / 1000.0),
    };
    let mut text = format!(
        "# {device} {tb}, made from figures of its data sheet by\n\
         # `floatgate drives new --like {like} --datasheet FILE`.\n\
         # No rate of this model was compared with a measured one.\n"
    );
    for name in sheet.unstated() {
        _ = writeln!(text, "# Not stated, so as {like}: {name}.");
    }
    let noted = sheet.noted();
    if !noted.is_empty() {
        _ = writeln!(text, "# Stated, and no part of the model: {}.", noted.join(", "));
    }
    let media = sheet.value(Quantity::NandLayers);
    let media = media.map_or(class.media.clone(), |it| format!("{}, {it} layers", class.media));
    let generation = sheet.value(Quantity::PcieGen).zip(sheet.value(Quantity::PcieLanes));
    let link =
        generation.map_or(class.form.clone(), |(version, x)| format!("PCIe {version}.0 x{x}"));
    let form = sheet.form().map_or(link.clone(), |form| format!("{form}, {link}"));
    let year = sheet.value(Quantity::ReleaseYear);
    let year = year.map_or(String::new(), |year| format!("year = {year}\n"));
    let (name, gb, lapse) = (sheet.name(), sheet.capacity_gb, numbers.time_lapse);
    _ = write!(
        text,
        "schema = 1\nlike = \"{like}\"\nname = \"{name}\"\ntitle = \"{device} {tb}\"\n\
         vendor = \"{}\"\n{year}media = \"{media}\"\nform = \"{form}\"\ntime_lapse = {lapse}\n\
         validated = false\n",
        vendor(device)
    );
    let source = format!("published: {}", sheet.document());
    text += &table("published", &format!("device = \"{device}\"\ncapacity_gb = {gb}\n"), &source);
    text += &table("[format]", &format!("name = \"stock\"\nuser_gb = {gb}\n"), &source);
    text
}

fn geometry(sheet: &Sheet<'_>, numbers: &Numbers, class: &DriveSpec) -> String {
    let dies = numbers.banks * numbers.dies_per_bank;
    let mut lines =
        format!("banks = {}\ndies_per_bank = {}\n", numbers.banks, numbers.dies_per_bank);
    let mut source = format!(
        "derived: {dies} dies like those of {}, the power-of-two multiple next above {} GB",
        class.name, sheet.capacity_gb
    );
    if let (Some(spare), Some((amplification, alpha))) =
        (numbers.spare_erase_blocks, numbers.settled)
    {
        _ = writeln!(lines, "spare_erase_blocks_per_plane = {spare}");
        _ = write!(
            source,
            "; spares from {}: a write amplification of {amplification:.2}, which greedy cleaning \
             has with {alpha:.3} physical pages for each logical one",
            sheet.quoted(Quantity::SettledWrite)
        );
        if spare == 0 {
            source += ", more than there are";
        }
    }
    _ = writeln!(lines, "stripe_dies = {}", numbers.stripe_dies);
    table("geometry", &lines, &source)
}

fn nand(sheet: &Sheet<'_>, numbers: &Numbers, class: &DriveSpec) -> String {
    let mut lines = String::new();
    let mut sources = Vec::new();
    if let Some(time) = numbers.t_read_us {
        _ = writeln!(lines, "t_read_us = {}", short(time));
        let quoted = sheet.quoted(Quantity::ReadLatency);
        sources.push(format!("{quoted}, less host, controller, link and channel"));
    }
    let program = || {
        let dies = numbers.banks * numbers.dies_per_bank;
        let quoted = sheet.quoted(Quantity::SequentialWrite);
        let parity = match numbers.stripe_dies {
            0 => String::new(),
            dies => format!(", one in {dies} of which holds parity"),
        };
        format!("programs from {quoted} over {dies} dies{parity}")
    };
    if let Some(times) = &numbers.t_program_us {
        let times: Vec<String> = times.iter().map(|time| short(*time)).collect();
        _ = writeln!(lines, "t_program_us = [{}]", times.join(", "));
        sources.push(program());
    }
    let nand = derived("nand", &lines, &sources);
    let Some(time) = numbers.slc_program_us else { return nand };
    let cache = class.slc_cache.as_ref().expect("only a class with a cache has its time");
    let of_class = class.format(&class.formats()[0]).expect("its own").user_gb;
    let share = sheet.capacity_gb / of_class;
    let lines = format!(
        "static_gb = {}\ndynamic_gb = {}\nt_program_us = {}\n",
        short(cache.static_gb * share),
        short(cache.dynamic_gb * share),
        short(time)
    );
    let source =
        format!("derived: the same share of the capacity as {}; {}", class.name, program());
    nand + &table("slc_cache", &lines, &source)
}

fn controller(sheet: &Sheet<'_>, numbers: &Numbers, class: &DriveSpec) -> String {
    let mut lines = String::new();
    let mut sources = Vec::new();
    let cores = class.controller.cores;
    if let Some(time) = numbers.read_us {
        _ = writeln!(lines, "read_us = {}", short(time));
        sources.push(format!("{cores} cores, {}", sheet.quoted(Quantity::RandomRead)));
    }
    if let Some(time) = numbers.write_us {
        _ = writeln!(lines, "write_us = {}", short(time));
        sources.push(match sheet.quoted(Quantity::BurstWrite) {
            none if none.is_empty() => {
                format!("a write takes longer than a read as in {}", class.name)
            }
            quoted => quoted,
        });
    }
    derived("controller", &lines, &sources)
}

fn buffer(sheet: &Sheet<'_>, numbers: &Numbers, class: &DriveSpec) -> String {
    let mut lines = String::new();
    let mut sources = Vec::new();
    if numbers.buffer_kib != class.buffer.kib {
        lines = format!("kib = {}\n", numbers.buffer_kib);
        sources.push(format!("as much for each die as {}", class.name));
    }
    if let Some(time) = numbers.acknowledge_us {
        _ = writeln!(lines, "acknowledge_us = {}", short(time));
        let quoted = sheet.quoted(Quantity::WriteLatency);
        sources.push(format!("{quoted}, less host, controller and link"));
    }
    derived("buffer", &lines, &sources)
}

fn relocation(numbers: &Numbers, class: &DriveSpec) -> String {
    let (low, high) = numbers.watermarks;
    if numbers.banks == class.geometry.banks {
        return String::new();
    }
    let lines = format!("watermark_low = {low}\nwatermark_high = {high}\n");
    let each = format!("as {}, and two superblocks for each bank more or less", class.name);
    derived("relocation", &lines, &[each])
}

fn endurance(sheet: &Sheet<'_>) -> String {
    let years = sheet.value(Quantity::WarrantyYears);
    let stated = sheet.value(Quantity::EndurancePbw);
    let daily = sheet.value(Quantity::EnduranceDwpd).zip(years);
    let of_daily = |(dwpd, years): (f64, f64)| dwpd * sheet.capacity_gb * 365.0 * years / 1e6;
    let Some(pb) = stated.or(daily.map(of_daily)) else { return String::new() };
    let years = years.map_or(String::new(), |years| format!("warranty_years = {years}\n"));
    let quoted = match stated {
        Some(_) => format!("published: {}", sheet.quoted(Quantity::EndurancePbw)),
        None => format!("derived: {}", sheet.quoted(Quantity::EnduranceDwpd)),
    };
    table("endurance", &format!("rated_pb = {}\n{years}", short(pb)), &quoted)
}

/// A table of derived values; nothing where none is.
fn derived(name: &str, lines: &str, sources: &[String]) -> String {
    match sources {
        [] => String::new(),
        sources => table(name, lines, &format!("derived: {}", sources.join("; "))),
    }
}

/// A table with its source.
fn table(name: &str, lines: &str, source: &str) -> String {
    let source = source.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\n[{name}]\n{lines}source = \"{source}\"\n")
}

/// The maker in the name of a device: its first word, and a second one in lower case.
fn vendor(device: &str) -> &str {
    let is_lower = |word: &&str| word.starts_with(|letter: char| letter.is_ascii_lowercase());
    let mut words = device.split(' ');
    let first = words.next().unwrap_or_default();
    let second = words.next().filter(is_lower).map_or(0, |word| word.len() + 1);
    &device[..first.len() + second]
}

/// A number with four significant digits.
fn short(value: f64) -> String {
    let decimals = match value.abs() {
        1000.0.. => 0,
        100.0.. => 1,
        10.0.. => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}
