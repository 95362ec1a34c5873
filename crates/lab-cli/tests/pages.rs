//! Pages as a reader sees them: in a browser, on a telephone, a tablet and a desk, with the folds
//! closed and open. No word is out of sight, none covers another, and the first figure is on the
//! first screen.
//!
//! 1. Pages are made by short commands, and by a report of everything that is hard to lay out.
//! 2. One page has each of them in frames of three widths; `pages/look.js` measures in them.
//! 3. Its findings are read from the page that Chromium prints.
//!
//! `SNOWMELT_PAGES` names a folder of pages to look at besides. `CHROMIUM` names the browser.

#[path = "pages/hostile.rs"]
mod hostile;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Widths and heights of the screens.
const SCREENS: [(u32, u32); 3] = [(390, 844), (800, 1100), (1400, 900)];
/// A browser that takes longer hangs.
const MOST_TIME: Duration = Duration::from_secs(240);

/// The browser; without one the reason is printed.
fn browser() -> Option<PathBuf> {
    let named = std::env::var_os("CHROMIUM").map(PathBuf::from);
    let names = ["chromium", "chromium-browser", "google-chrome"].map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path =
        |name: &PathBuf| std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file());
    let found = named.iter().chain(&names).find_map(on_path);
    if found.is_none() {
        println!("skipped: there is no chromium, so pages were not looked at; install chromium");
    }
    found
}

/// Looks at pages. Returns the defects, and a line of how much was looked at.
fn look(browser: &Path, pages: &[PathBuf]) -> (Vec<String>, String) {
    let dir = tempfile::tempdir().unwrap();
    let mut all = String::from("<!doctype html><meta charset=\"utf-8\"><body>\n");
    for page in pages {
        let page = page.canonicalize().unwrap();
        for (width, height) in SCREENS {
            let (shown, address) = (escape(&page.display().to_string()), escape(&address(&page)));
            writeln!(
                all,
                "<iframe data-page=\"{shown}\" src=\"{address}\" width=\"{width}\" height=\"{height}\"></iframe>"
            )
            .unwrap();
        }
    }
    write!(all, "<script>{}</script>", include_str!("pages/look.js")).unwrap();
    let (wrapper, printed, said) =
        (dir.path().join("all.html"), dir.path().join("out"), dir.path().join("err"));
    std::fs::write(&wrapper, all).unwrap();
    let file = |path: &Path| Stdio::from(std::fs::File::create(path).unwrap());
    let mut child = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"])
        .args(["--enable-logging=stderr", "--hide-scrollbars", "--dump-dom"])
        .arg(format!("--user-data-dir={}", dir.path().join("profile").display()))
        .arg(format!("file://{}", wrapper.display()))
        .stdin(Stdio::null())
        .stdout(file(&printed))
        .stderr(file(&said))
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > MOST_TIME {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{} has not ended in {MOST_TIME:?}", browser.display());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let said = std::fs::read_to_string(said).unwrap_or_default();
    let printed = std::fs::read_to_string(printed).unwrap();
    let found = printed.split_once("<pre id=\"found\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let (found, _) = found.unwrap_or_else(|| panic!("the browser printed no findings; it said:\n{said}"));
    let found = found.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", " ").replace("&amp;", "&");
    let (first, defects) = found.split_once('\n').unwrap_or((&found, ""));
    let console = said.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned);
    (defects.lines().map(str::to_owned).chain(console).collect(), first.to_owned())
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;")
}

fn address(path: &Path) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    format!("file://{}", path.display().to_string().bytes().map(byte).collect::<String>())
}

/// Checks that nothing is wrong with some pages.
fn expect_whole(browser: &Path, pages: &[PathBuf]) {
    let (defects, looked) = look(browser, pages);
    println!("{looked}");
    assert!(looked.starts_with(&format!("looked at {} frames", pages.len() * SCREENS.len())), "{looked}");
    assert!(defects.is_empty(), "{} defects:\n{}", defects.len(), defects.join("\n"));
}

/// Pages below a folder.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "html") {
            found.push(path);
        }
    }
    found.sort();
}

/// Runs a command of the laboratory. Returns whether it could: some need a block device below the
/// temporary files.
fn lab(dir: &Path, line: &[&str]) -> bool {
    let output =
        Command::new(env!("CARGO_BIN_EXE_snowmelt-lab")).current_dir(dir).args(line).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("no block device") {
        println!("skipped: {}: temporary files are on no block device here", line.join(" "));
        return false;
    }
    assert!(output.status.success(), "{line:?}: {said}");
    true
}

/// Makes the pages of short commands below `runs`. Returns how many.
fn make_pages(dir: &Path) -> usize {
    std::fs::write(dir.join("data"), vec![7; 4 << 20]).unwrap();
    let other = "runs/a-second-read-with-a-long-name-of-its-folder";
    let read = |more: &str, out: &str| {
        let line = format!("read data --wait --direct off --runtime 0.1 {more} --out {out}");
        lab(dir, &line.split(' ').collect::<Vec<_>>())
    };
    let many = "--sizes 4k,64k --depth 1,4 --engine inline,threads --repeats 3";
    let both = read(many, "runs/read") && read(many, other);
    let mut made = 2 * usize::from(both);
    made += usize::from(both && lab(dir, &["compare", "runs/read", other, "--out", "runs/compare"]));
    made += usize::from(read("--sizes 8k --depth 1 --engine inline", "runs/cell"));
    for line in [
        "write new --wait --size 4m --writes 40 --runtime 0.3 --repeats 2 --out runs/write",
        "scan data --wait --dop 1,2 --size 4m --repeat 1 --direct off --out runs/scan",
    ] {
        made += usize::from(lab(dir, &line.split(' ').collect::<Vec<_>>()));
    }
    let script = "head -c 3000000 /dev/zero > out; sleep 0.3";
    made + usize::from(lab(
        dir,
        &["watch", "--interval-ms", "100", "--out", "runs/watch", "--", "sh", "-c", script],
    ))
}

#[test]
fn pages_of_commands_are_whole_at_three_widths() {
    let Some(browser) = browser() else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    let made = make_pages(path);
    let hostile = path.join("runs/hostile");
    std::fs::create_dir_all(&hostile).unwrap();
    let report = serde_json::to_string(&hostile::report()).unwrap();
    std::fs::write(hostile.join("report.json"), report).unwrap();
    let settings = "{\"kind\":\"bsbm\",\"began\":\"2026-01-01T00:00:00Z\"}";
    std::fs::write(hostile.join("settings.json"), settings).unwrap();
    assert!(lab(path, &["report", "runs/hostile"]) && lab(path, &["gallery", "runs"]));
    let mut all = Vec::new();
    pages(&path.join("runs"), &mut all);
    assert_eq!(all.len(), made + 2, "{all:?}");
    expect_whole(&browser, &all);
}

#[test]
fn pages_of_a_folder_are_whole_at_three_widths() {
    let Some(folder) = std::env::var_os("SNOWMELT_PAGES") else {
        println!("skipped: SNOWMELT_PAGES names no folder of pages");
        return;
    };
    let Some(browser) = browser() else { return };
    let mut all = Vec::new();
    pages(Path::new(&folder), &mut all);
    assert!(!all.is_empty(), "there are no pages in {}", folder.display());
    expect_whole(&browser, &all);
}

/// A page with a fault in it, and a part of the defect that has to be told of it.
struct Plant {
    name: &'static str,
    from: &'static str,
    to: &'static str,
    told: &'static str,
}

const PLANTS: [Plant; 13] = [
    Plant {
        name: "table-cut",
        from: "table class=\"blocks early\"",
        to: "table class=\"small\"",
        told: "is out of sight",
    },
    Plant { name: "squeezed", from: "min-width: 12.5ch", to: "min-width: 0", told: "is squeezed" },
    Plant {
        name: "no-hint",
        from: "classList.toggle('wider'",
        to: "classList.toggle('x'",
        told: "without a hint",
    },
    Plant {
        name: "title",
        from: "overflow-wrap: anywhere",
        to: "overflow-wrap: normal",
        told: "at 390: the page is",
    },
    Plant {
        name: "button",
        from: "<h1 class=\"long\">",
        to: "<h1 style=\"flex:none;white-space:nowrap\">",
        told: "Dark / light\" cannot be seen",
    },
    Plant {
        name: "hidden",
        from: "tools.hidden = false",
        to: "tools.hidden = true",
        told: "cannot be saved",
    },
    Plant {
        name: "console",
        from: "'use strict';",
        to: "'use strict'; nothing_of_that_name();",
        told: "CONSOLE",
    },
    Plant {
        name: "theme",
        from: "root.dataset.theme = dark",
        to: "root.dataset.other = dark",
        told: "changes no theme",
    },
    Plant {
        name: "first",
        from: "<section class=\"summary\">",
        to: "<div style=\"height:900px\"></div><section>",
        told: "the first figure begins",
    },
    Plant { name: "texts", from: "text-anchor=\"end\"", to: "text-anchor=\"start\"", told: "covers" },
    Plant {
        name: "small",
        from: ".drawing .tick {",
        to: ".drawing .tick { font-size: 5px !important;",
        told: "px high",
    },
    Plant {
        name: "outside",
        from: "text-anchor=\"start\"",
        to: "text-anchor=\"end\"",
        told: "reaches out of its drawing",
    },
    Plant {
        name: "whisker",
        from: "class=\"whisker\"",
        to: "class=\"whisker\" transform=\"translate(0 -7)\"",
        told: "a range runs through",
    },
];

#[test]
fn each_defect_is_found() {
    let Some(browser) = browser() else { return };
    let dir = tempfile::tempdir().unwrap();
    let whole = hostile::report().html();
    let mut files = Vec::new();
    for Plant { name, from, to, .. } in &PLANTS {
        assert!(whole.contains(from), "{name}: the page has no {from}");
        let file = dir.path().join(format!("{name}.html"));
        std::fs::write(&file, whole.replace(from, to)).unwrap();
        files.push(file);
    }
    let (defects, _) = look(&browser, &files);
    for Plant { name, told, .. } in &PLANTS {
        let is_told = |line: &&String| line.contains(&format!("{name}.html")) && line.contains(told);
        let of_it: Vec<_> = defects.iter().filter(|line| line.contains(&format!("{name}.html"))).collect();
        assert!(defects.iter().any(|line| is_told(&line)), "{name} is not found: {of_it:#?}");
    }
}
