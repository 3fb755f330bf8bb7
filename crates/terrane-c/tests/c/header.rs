//! `terrane.h` says what the code says: every function, structure, function type and number, in C's words.

use std::collections::BTreeMap;
use std::path::Path;

use syn::{Expr, Fields, FnArg, Item, Lit, Pat, ReturnType, Type};

/// Declarations by their names.
type Declarations = BTreeMap<String, String>;

/// The name in C of a structure or function type.
fn c_name(rust: &str) -> String {
    let mut name = String::from("trn");
    for letter in rust.chars() {
        if letter.is_uppercase() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

/// A value of a type, in C.
fn c_declaration(kind: &Type, name: &str) -> String {
    match kind {
        Type::Ptr(pointer) => {
            let constant = if pointer.const_token.is_some() {
                "const "
            } else {
                ""
            };
            // A pointer to a pointer is changeable below: only `char **error` is.
            format!(
                "{constant}{}",
                c_declaration(&pointer.elem, &format!("*{name}"))
            )
        }
        Type::Array(array) => {
            let Expr::Lit(length) = &array.len else {
                panic!("an array of {name} without a number");
            };
            let Lit::Int(length) = &length.lit else {
                panic!("an array of {name} without a number");
            };
            c_declaration(&array.elem, &format!("{name}[{length}]"))
        }
        Type::Path(path) => {
            let last = path.path.segments.last().unwrap();
            let word = last.ident.to_string();
            let plain = match word.as_str() {
                "u8" => "uint8_t",
                "u16" => "uint16_t",
                "u32" => "uint32_t",
                "u64" => "uint64_t",
                "i32" => "int32_t",
                "i64" => "int64_t",
                "usize" => "size_t",
                "f32" => "float",
                "f64" => "double",
                "c_char" => "char",
                "c_void" => "void",
                "ErrorText" => return format!("char **{name}"),
                "Option" => {
                    let syn::PathArguments::AngleBracketed(inner) = &last.arguments else {
                        panic!("an option of nothing");
                    };
                    let Some(syn::GenericArgument::Type(inner)) = inner.args.first() else {
                        panic!("an option of nothing");
                    };
                    return c_declaration(inner, name);
                }
                _ => return format!("{} {name}", c_name(&word)),
            };
            format!("{plain} {name}")
        }
        _ => panic!("{name} has a type that the header cannot have"),
    }
}

fn c_result(output: &ReturnType, name: &str) -> String {
    match output {
        ReturnType::Default => format!("void {name}"),
        ReturnType::Type(_, kind) => c_declaration(kind, name),
    }
}

fn listed(arguments: Vec<String>) -> String {
    if arguments.is_empty() {
        "void".into()
    } else {
        arguments.join(", ")
    }
}

fn add(item: &Item, found: &mut Declarations) {
    match item {
        Item::Fn(function) if function.sig.abi.is_some() => {
            let name = function.sig.ident.to_string();
            let arguments = function.sig.inputs.iter().map(|argument| {
                let FnArg::Typed(argument) = argument else {
                    panic!("{name} has a self");
                };
                let Pat::Ident(word) = &*argument.pat else {
                    panic!("{name} has an argument without a name");
                };
                c_declaration(&argument.ty, &word.ident.to_string())
            });
            let arguments = listed(arguments.collect());
            let result = c_result(&function.sig.output, &name);
            found.insert(name, format!("{result}({arguments});"));
        }
        Item::Struct(structure)
            if structure
                .attrs
                .iter()
                .any(|attribute| attribute.path().is_ident("repr")) =>
        {
            let name = c_name(&structure.ident.to_string());
            let Fields::Named(fields) = &structure.fields else {
                panic!("{name} has fields without names");
            };
            let fields = fields.named.iter().map(|field| {
                let word = field.ident.as_ref().unwrap().to_string();
                format!("{}; ", c_declaration(&field.ty, &word))
            });
            let fields: String = fields.collect();
            found.insert(
                name.clone(),
                format!("typedef struct {name} {{ {fields}}} {name};"),
            );
        }
        Item::Type(kind) => {
            if let Type::BareFn(function) = &*kind.ty {
                let name = c_name(&kind.ident.to_string());
                let arguments = function.inputs.iter().map(|argument| {
                    let (word, _) = argument.name.as_ref().unwrap();
                    c_declaration(&argument.ty, &word.to_string())
                });
                let arguments = listed(arguments.collect());
                let result = c_result(&function.output, &format!("(*{name})"));
                found.insert(name, format!("typedef {result}({arguments});"));
            }
        }
        Item::Const(constant) => {
            let name = constant.ident.to_string();
            if let (true, Expr::Lit(value)) = (name.starts_with("TRN_"), &*constant.expr) {
                let Lit::Int(value) = &value.lit else {
                    panic!("{name} is no number");
                };
                found.insert(name.clone(), format!("#define {name} {value}"));
            }
        }
        _ => {}
    }
}

/// What the code declares.
fn of_code(folder: &Path) -> Declarations {
    let mut found = Declarations::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for item in &syn::parse_file(&text).unwrap().items {
            add(item, &mut found);
        }
    }
    found
}

/// What the header declares, without comments and with single spaces.
fn of_header(text: &str) -> Declarations {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("/*") {
        plain.push_str(before);
        rest = after.split_once("*/").unwrap().1;
    }
    plain.push_str(rest);
    let mut found = Declarations::new();
    let mut code = String::new();
    let mut depth = 0;
    for line in plain.lines() {
        if let Some(number) = line.strip_prefix("#define TRN_") {
            let name = number.split_whitespace().next().unwrap();
            let text = line.split_whitespace().collect::<Vec<_>>().join(" ");
            found.insert(format!("TRN_{name}"), text);
        } else if !line.starts_with('#') && !line.starts_with("extern \"C\"") && line.trim() != "}"
        {
            code.push_str(line);
            code.push(' ');
        }
    }
    let mut statement = String::new();
    for letter in code.chars() {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        statement.push(letter);
        if letter == ';' && depth == 0 {
            let text = statement.split_whitespace().collect::<Vec<_>>().join(" ");
            statement.clear();
            // The name: before the arguments, after (* of a function type, or last of a structure.
            let name = if let Some((_, after)) = text.split_once("(*") {
                after.split(')').next().unwrap()
            } else if text.starts_with("typedef") {
                text.trim_end_matches(';').rsplit(' ').next().unwrap()
            } else {
                let head = text.split('(').next().unwrap();
                head.rsplit([' ', '*']).next().unwrap()
            };
            found.insert(name.to_owned(), text.clone());
        }
    }
    found
}

#[test]
fn the_header_says_what_the_code_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut code = of_code(&folder.join("src"));
    // It has no fields outside.
    let handle = "typedef struct trn_file trn_file;";
    code.insert("trn_file".into(), handle.into());
    let header = of_header(&std::fs::read_to_string(folder.join("include/terrane.h")).unwrap());
    assert!(code.len() > 40, "{code:?}");
    for (name, declaration) in &code {
        let written = header.get(name);
        assert_eq!(written, Some(declaration), "{name} in the header");
    }
    for name in header.keys() {
        assert!(code.contains_key(name), "{name} is in the header alone");
    }
}

#[test]
fn a_change_of_either_side_is_seen() {
    let item = |text: &str| {
        let mut found = Declarations::new();
        add(&syn::parse_str(text).unwrap(), &mut found);
        found
    };
    let code =
        item("unsafe extern \"C\" fn trn_a(file: *const File, error: ErrorText) -> i32 { 0 }");
    let same = of_header("int32_t trn_a(const trn_file *file, char **error);");
    assert_eq!(code, same);
    for other in [
        "int64_t trn_a(const trn_file *file, char **error);",
        "int32_t trn_a(trn_file *file, char **error);",
        "int32_t trn_a(const trn_file *file);",
        "int32_t trn_b(const trn_file *file, char **error);",
    ] {
        assert_ne!(code, of_header(other), "{other}");
    }
    let code = item("#[repr(C)] struct Part { level: u32, affine: [f64; 6] }");
    let same = "typedef struct trn_part { uint32_t level; double affine[6]; } trn_part;";
    assert_eq!(code, of_header(same));
}
