//! Tests of the book's pages about the command lines of both programs.
//!
//! 1. The pages `command-line.md` and `command-line-lab.md` are made from the definitions of the
//!    commands. `SNOWMELT_WRITE=1 cargo test -p snowmelt-lab-cli pages` writes them again.
//! 2. Each command in a code block of the book or of a README is one that its program takes, and
//!    each that stands within a sentence.
//! 3. `forms`: each switch can be written as its table shows it.

mod forms;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::{Arg, Command};

/// Help headings whose switches are the same for all commands that have them: they are listed
/// once, at the end.
const COMMON: [&str; 3] = ["I/O", "Journal", "Limits of queries and updates"];

const HEAD: &str = "Each command, its arguments and its switches. The page is made from the \
    program's own\ndefinitions, and a test compares it. `snowmelt COMMAND --help` prints the same; \
    switches that\nfew need are behind `--help io` and `--help limits`. Any switch can stand in a\n\
    [configuration file](configuration.md) instead.\n\nSizes are bytes, or have a unit: `512MiB`, \
    `4GiB`, `64k`.\n";

const LAB_HEAD: &str = "Each command of [the laboratory](../lab/index.md). The page is made from \
    the program's own\ndefinitions, and a test compares it. Lists are separated by commas, and \
    every combination of\nthem is a cell of the run. Names and units are those of fio where fio \
    has them.\n";

fn book() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src")
}

fn built(mut command: Command) -> Command {
    command.build();
    command
}

/// The page of `snowmelt`.
fn page() -> String {
    let commands = built(snowmelt_cli::command());
    let mut text = format!("# Command line\n\n{HEAD}");
    shown(&commands).for_each(|command| section(&mut text, command, 2, ""));
    let owners: Vec<_> = leaves(&commands);
    for heading in COMMON {
        let rows = owners.iter().map(|command| switches(command, Some(heading)));
        let mut rows: Vec<_> = rows.filter(|rows| !rows.is_empty()).collect();
        rows.dedup();
        assert_eq!(rows.len(), 1, "the switches of {heading} differ between commands: list them with each");
        writeln!(text, "\n## Switches: {heading}\n\n{}", rows[0].trim_end()).unwrap();
    }
    text
}

/// The page of the laboratory's commands.
fn lab_page() -> String {
    let commands = built(crate::command());
    let mut text = format!("# Command line of the laboratory\n\n{LAB_HEAD}");
    shown(&commands).for_each(|command| section(&mut text, command, 2, "command-line.md"));
    text
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|command| command.get_name() != "help" && !command.is_hide_set())
}

/// The commands without subcommands.
fn leaves(command: &Command) -> Vec<&Command> {
    match command.has_subcommands() {
        true => shown(command).flat_map(leaves).collect(),
        false => vec![command],
    }
}

/// The switches that many commands have in common are on `common_page`.
fn section(text: &mut String, command: &Command, depth: usize, common_page: &str) {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    write!(text, "\n{} {name}\n\n{}\n", "#".repeat(depth), filled(&format!("{about}."), "")).unwrap();
    if command.has_subcommands() {
        shown(command).for_each(|command| section(text, command, depth + 1, common_page));
        return;
    }
    let usage = command.clone().render_usage().to_string();
    write!(text, "\n    {}\n", usage.trim_start_matches("Usage: ")).unwrap();
    for (at, arg) in command.get_positionals().enumerate() {
        let lead = if at == 0 { "\n" } else { "" };
        writeln!(text, "{lead}{}", filled(&format!("* `{arg}`: {}", help(arg)), "  ")).unwrap();
    }
    let mut headings: Vec<Option<&str>> = vec![None];
    for arg in command.get_arguments().filter(|arg| !arg.is_positional()) {
        if !headings.contains(&arg.get_help_heading()) {
            headings.push(arg.get_help_heading());
        }
    }
    for heading in headings.iter().filter(|heading| !heading.is_some_and(|name| COMMON.contains(&name))) {
        let rows = switches(command, *heading);
        if !rows.is_empty() {
            let title = heading.map(|heading| format!("{heading}:\n\n")).unwrap_or_default();
            write!(text, "\n{title}{rows}").unwrap();
        }
    }
    let common: Vec<_> = headings.iter().flatten().filter(|name| COMMON.contains(name)).collect();
    if !common.is_empty() {
        let links = common.iter().map(|name| format!("[{name}]({common_page}#switches-{})", anchor(name)));
        let also = format!("Also the switches of {}.", links.collect::<Vec<_>>().join(", "));
        write!(text, "\n{}\n", filled(&also, "")).unwrap();
    }
}

/// A paragraph in lines of at most 96 columns; those after the first begin with `indent`.
fn filled(paragraph: &str, indent: &str) -> String {
    const MOST_COLUMNS: usize = 96;
    let mut lines = vec![String::new()];
    for word in paragraph.split(' ') {
        let line = lines.last_mut().expect("there is one");
        if line.chars().count() + 1 + word.chars().count() > MOST_COLUMNS {
            lines.push(format!("{indent}{word}"));
        } else {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines.join("\n")
}

fn anchor(heading: &str) -> String {
    heading.to_lowercase().replace('/', "").replace(' ', "-")
}

/// A table of the switches under a heading; nothing when there are none.
fn switches(command: &Command, heading: Option<&str>) -> String {
    let mut rows = String::new();
    let is_of = |arg: &&Arg| {
        let name = arg.get_id().as_str();
        !arg.is_positional()
            && arg.get_help_heading() == heading
            && !["help", "version", "config"].contains(&name)
    };
    for arg in command.get_arguments().filter(is_of) {
        let cells = [switch(arg), default(arg), help(arg)].map(|cell| cell.replace('|', "\\|"));
        writeln!(rows, "| {} | {} | {} |", cells[0], cells[1], cells[2]).unwrap();
    }
    if rows.is_empty() { rows } else { format!("| switch | default | meaning |\n|---|---|---|\n{rows}") }
}

fn switch(arg: &Arg) -> String {
    let long = arg.get_long().map(|long| format!("--{long}"));
    let short = arg.get_short().map(|short| format!("-{short}"));
    let name = short.into_iter().chain(long).collect::<Vec<_>>().join(", ");
    let Some([value, ..]) = arg.get_value_names().filter(|_| arg.get_action().takes_values()) else {
        return format!("`{name}`");
    };
    let is_optional = arg.get_num_args().is_some_and(|number| number.min_values() == 0);
    match (arg.is_require_equals_set(), is_optional) {
        (true, true) => format!("`{name}[={value}]`"),
        (true, false) => format!("`{name}={value}`"),
        (false, true) => format!("`{name} [{value}]`"),
        (false, false) => format!("`{name} {value}`"),
    }
}

/// A default that is hidden is told by the help: it is none, or that of the machine.
fn default(arg: &Arg) -> String {
    if arg.is_hide_default_value_set() {
        return String::new();
    }
    let values = arg.get_default_values().iter().map(|value| value.to_string_lossy());
    match values.collect::<Vec<_>>().join(",") {
        none if none.is_empty() || !arg.get_action().takes_values() => String::new(),
        values => format!("`{values}`"),
    }
}

/// The help, with the values that are possible.
fn help(arg: &Arg) -> String {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let help = help.trim_end_matches('.').replace('<', "&lt;");
    let values = arg.get_possible_values();
    let names: Vec<_> = values.iter().map(|value| format!("`{}`", value.get_name())).collect();
    match names.is_empty() || !arg.get_action().takes_values() {
        true => help,
        false => format!("{help}: {}", names.join(", ")),
    }
}

fn compare(file: &str, expected: &str) {
    let path = book().join("reference").join(file);
    if std::env::var("SNOWMELT_WRITE").is_ok_and(|value| value == "1") {
        std::fs::write(&path, expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = found.lines().zip(expected.lines()).find(|(found, expected)| found != expected);
    assert!(
        found == expected,
        "{file} is not what the commands are; first difference: {differs:?}. Write it again: \
         SNOWMELT_WRITE=1 cargo test -p snowmelt-lab-cli pages"
    );
}

#[test]
fn the_page_of_the_command_line_is_up_to_date() {
    compare("command-line.md", &page());
}

#[test]
fn the_page_of_the_laboratory_s_commands_is_up_to_date() {
    compare("command-line-lab.md", &lab_page());
}

/// The commands in the code blocks of a page: lines that begin with a program of ours, or with
/// `cargo run … --` for `snowmelt`, without what a shell makes of them.
fn commands_of(page: &str) -> Vec<Vec<String>> {
    let is_fenced = |line: &str| line.trim_start().starts_with("```");
    let mut in_fence = false;
    let mut code = String::new();
    for line in page.lines() {
        if is_fenced(line) {
            in_fence = !in_fence;
        } else if in_fence || line.starts_with("    ") {
            writeln!(code, "{}", line.trim()).unwrap();
        }
    }
    code = code.replace("\\\n", " ");
    code.lines().flat_map(shell_commands).filter_map(ours).collect()
}

/// The words of a command of ours, from its name on.
fn ours(words: Vec<String>) -> Option<Vec<String>> {
    let wrappers = ["$", "sudo", "-E", "time", "nice"];
    let mut words: Vec<String> = words.into_iter().skip_while(|word| wrappers.contains(&&**word)).collect();
    let cargo = "cargo run --release -- ";
    if words.join(" ").starts_with(cargo) {
        words.splice(..cargo.split(' ').count() - 1, ["snowmelt".to_owned()]);
    }
    let is_ours = ["snowmelt", "snowmelt-lab"].contains(&words.first()?.as_str());
    // In a file of settings it is a name.
    (is_ours && words.get(1).is_some_and(|word| word != "=")).then_some(words)
}

/// Commands of a line of shell, as words: quotes are heeded; pipes and lists are cut, redirections
/// and comments left out.
fn shell_commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let (mut word, mut quote) = (None::<String>, None);
    for c in line.chars().chain([' ']) {
        match (c, quote) {
            (c, Some(q)) if c == q => quote = None,
            (c, Some(_)) => word.get_or_insert_default().push(c),
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('#', None) if word.is_none() => break,
            (' ' | '|' | ';' | '&', None) => {
                commands.last_mut().expect("there is one").extend(word.take());
                if c != ' ' {
                    commands.push(Vec::new());
                }
            }
            (c, None) => word.get_or_insert_default().push(c),
        }
    }
    for command in &mut commands {
        if let Some(at) = command.iter().position(|word| [">", "<", "2>", ">>"].contains(&&**word)) {
            command.truncate(at);
        }
    }
    commands
}

#[test]
fn commands_are_cut_from_code() {
    let page = "snowmelt no\n\n    sudo snowmelt load a.db - --format nt < x   # why\n\n```\n\
                gen -o - | snowmelt query a.db \\\n  'SELECT # * {}' && ls\n```\n";
    let found: Vec<String> = commands_of(page).iter().map(|words| words.join("_")).collect();
    assert_eq!(found, ["snowmelt_load_a.db_-_--format_nt", "snowmelt_query_a.db_SELECT # * {}"]);
}

/// Pages below a folder.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(pages(&path)),
            false => found.extend(path.extension().is_some_and(|e| e == "md").then_some(path)),
        }
    }
    found.sort();
    found
}

/// The book's pages, and those that readers see before it.
fn documents() -> Vec<PathBuf> {
    let root = book().join("../..");
    let front = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "crates/python/README.md"];
    pages(&book()).into_iter().chain(front.map(|page| root.join(page))).collect()
}

/// Commands of ours within a sentence: code between single backticks, which may go on in the next
/// line.
fn mentions_of(page: &str) -> Vec<Vec<String>> {
    let is_text = |line: &&str| !line.starts_with("    ");
    let mut in_fence = false;
    let text: Vec<&str> = page
        .lines()
        .filter(|line| {
            in_fence ^= line.trim_start().starts_with("```");
            !in_fence && !line.trim_start().starts_with("```")
        })
        .filter(is_text)
        .map(str::trim)
        .collect();
    let paragraphs = text.split(|line| line.is_empty()).map(|lines| lines.join(" "));
    let spans = |paragraph: String| -> Vec<String> {
        paragraph.split('`').skip(1).step_by(2).map(|span| span.replace("\\|", "|")).collect()
    };
    paragraphs.flat_map(spans).flat_map(|span| shell_commands(&span)).filter_map(ours).collect()
}

/// Why a program refuses a command; nothing if it takes it.
fn refusal(programs: &[Command], words: &[String]) -> Option<clap::Error> {
    use clap::error::ErrorKind::{DisplayHelp, DisplayVersion};
    let program = programs.iter().find(|program| program.get_name() == words[0]);
    let error = program.expect("it is one of ours").clone().try_get_matches_from(words).err()?;
    // A folder of the example is not on this machine.
    let is_absent = error.to_string().contains("No such file");
    (!is_absent && !matches!(error.kind(), DisplayHelp | DisplayVersion)).then_some(error)
}

/// True where a command or a switch is only named, or has a word in capitals to be replaced.
fn is_named_only(words: &[String], error: &clap::Error) -> bool {
    use clap::error::ErrorKind as Kind;
    let is_placeholder = |word: &String| {
        let has_lowercase = word.chars().any(|c| c.is_ascii_lowercase());
        word.contains('…') || word.contains("...") || (word.len() > 1 && !has_lowercase)
    };
    let is_short = match error.kind() {
        Kind::MissingRequiredArgument
        | Kind::MissingSubcommand
        | Kind::DisplayHelpOnMissingArgumentOrSubcommand => true,
        Kind::InvalidValue => error.to_string().contains("but none was supplied"),
        _ => false,
    };
    is_short || words.iter().any(is_placeholder)
}

#[test]
fn every_command_of_the_book_is_one() {
    let programs = [snowmelt_cli::command(), crate::command()].map(built);
    let mut wrong = Vec::new();
    let mut counts = (0, 0);
    for path in documents() {
        let is_made = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("command-line"));
        let text = std::fs::read_to_string(&path).unwrap();
        let (examples, mentions) = (commands_of(&text), mentions_of(&text));
        let mut refused = |words: Vec<String>, error: clap::Error| {
            let reason = error.to_string().lines().next().unwrap_or_default().to_owned();
            wrong.push(format!("{}: {}: {reason}", path.display(), words.join(" ")));
        };
        for words in examples.into_iter().filter(|_| !is_made) {
            counts.0 += 1;
            if let Some(error) = refusal(&programs, &words) {
                refused(words, error);
            }
        }
        for words in mentions.into_iter().filter(|_| !is_made) {
            counts.1 += 1;
            if let Some(error) = refusal(&programs, &words).filter(|error| !is_named_only(&words, error)) {
                refused(words, error);
            }
        }
    }
    assert!(counts.0 > 50 && counts.1 > 50, "only {counts:?} commands found");
    assert!(wrong.is_empty(), "{} commands are refused:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn commands_are_found_within_sentences() {
    let page = "Ask `snowmelt\nstats db --meters` or `ls`.\n\n    `snowmelt no`\n\n| `snowmelt-lab read F` | `x` |\n";
    let found: Vec<String> = mentions_of(page).iter().map(|words| words.join(" ")).collect();
    assert_eq!(found, ["snowmelt stats db --meters", "snowmelt-lab read F"]);
}
