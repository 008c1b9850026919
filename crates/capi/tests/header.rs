//! `include/wirespeed.h` says what the code says: `cargo xtask header` makes it.
#![allow(clippy::unwrap_used)] // a test's helpers may panic like the test

use std::fs;
use std::path::{Path, PathBuf};

fn of_crate(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The crate's sources without comments, and with one space wherever there is any.
fn sources() -> String {
    let mut paths: Vec<_> =
        fs::read_dir(of_crate("src")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let texts = paths.into_iter().map(|path| fs::read_to_string(path).unwrap());
    let code = texts.flat_map(|text| text.lines().map(without_comment).collect::<Vec<_>>());
    packed(&code.collect::<Vec<_>>().join("\n"))
}

fn without_comment(line: &str) -> String {
    line.split("//").next().unwrap_or_default().to_owned()
}

/// The header without comments, and with one space wherever there is any.
fn header() -> String {
    let mut rest = &*fs::read_to_string(of_crate("include/wirespeed.h")).unwrap();
    let mut code = String::new();
    while let Some((before, comment)) = rest.split_once("/*") {
        code.push_str(before);
        rest = comment.split_once("*/").unwrap().1;
    }
    code.push_str(rest);
    packed(&code)
}

fn packed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace("( ", "(").replace(" )", ")")
}

/// A declaration of a type of Rust, as C writes it.
fn declared(of: &str, name: &str) -> String {
    let plain = |of: &str| {
        match of {
            "u8" => "uint8_t",
            "u16" => "uint16_t",
            "u32" => "uint32_t",
            "u64" => "uint64_t",
            "usize" => "size_t",
            "c_char" => "char",
            own => own,
        }
        .to_owned()
    };
    let of = of.trim();
    if let Some(to) = of.strip_prefix("*const [u8; ") {
        return format!("const uint8_t (*{name})[{to}");
    }
    if let Some(len) = of.strip_prefix("[u8; ") {
        return format!("uint8_t {name}[{len}");
    }
    if let Some(to) = of.strip_prefix("*const *const ") {
        return format!("const {} *const *{name}", plain(to));
    }
    if let Some(to) = of.strip_prefix("*const ") {
        return format!("const {} *{name}", plain(to));
    }
    if let Some(to) = of.strip_prefix("*mut ") {
        return format!("{} *{name}", plain(to));
    }
    format!("{} {name}", plain(of))
}

/// The parts of a list, whose members are `name: type`.
fn members(list: &str) -> Vec<(&str, &str)> {
    let parts = list.split(", ").flat_map(|part| part.split(',')).map(str::trim);
    parts.filter(|part| !part.is_empty()).map(|part| part.split_once(": ").unwrap()).collect()
}

#[test]
fn every_function_is_in_the_header() {
    let (sources, header) = (sources(), header());
    let mut functions = 0;
    for function in sources.split("#[unsafe(no_mangle)] pub ").skip(1) {
        let function = function.strip_prefix("unsafe ").unwrap_or(function);
        let function = function.strip_prefix("extern \"C\" fn ").unwrap();
        let (name, rest) = function.split_once('(').unwrap();
        let (arguments, rest) = rest.split_once(')').unwrap();
        let result = rest.split_once('{').unwrap().0.trim();
        let arguments: Vec<_> = members(arguments).into_iter().map(|(name, of)| declared(of, name)).collect();
        let arguments = if arguments.is_empty() { "void".to_owned() } else { arguments.join(", ") };
        let result = result.strip_prefix("-> ").unwrap_or("void");
        let wanted = format!("{};", declared(result, &format!("{name}({arguments})")));
        assert!(header.contains(&wanted), "not in wirespeed.h, run `cargo xtask header`: {wanted}");
        functions += 1;
    }
    let in_header = header.matches(");").count();
    assert_eq!(in_header, functions, "wirespeed.h has functions that are not there");
    assert!(functions > 40, "{functions}");
}

#[test]
fn every_structure_is_in_the_header() {
    let (sources, header) = (sources(), header());
    let mut structures = 0;
    for item in sources.split("#[repr(C)] ").skip(1) {
        let item = item.split_once("] pub ").unwrap().1;
        let (head, rest) = item.split_once(" {").unwrap();
        let body = rest.split_once('}').unwrap().0.trim();
        let (kind, name) = head.split_once(' ').unwrap();
        let wanted = match kind {
            "struct" => {
                let fields = members(body).into_iter();
                let fields: Vec<_> =
                    fields.map(|(name, of)| declared(of, name.trim_start_matches("pub ")) + ";").collect();
                format!("typedef struct {{ {} }} {name};", fields.join(" "))
            }
            _ => {
                let prefix = name.to_uppercase();
                let variants = body.split(',').map(str::trim).filter(|variant| !variant.is_empty());
                let variants: Vec<_> =
                    variants.map(|variant| format!("{prefix}_{}", variant.to_uppercase())).collect();
                format!("typedef enum {{ {}, }} {name};", variants.join(", "))
            }
        };
        assert!(header.contains(&wanted), "not in wirespeed.h, run `cargo xtask header`: {wanted}");
        structures += 1;
    }
    assert!(structures >= 9, "{structures}");
}
