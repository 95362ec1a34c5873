//! The subject of a watch: a process that runs, the processes of a control group, or a program
//! that is started, with limits of its memory and I/O or without.

use super::WatchArgs;
use super::marks::Marks;
use super::tree::Tree;
use crate::LabError;
use crate::group::caps::CapsInForce;
use crate::group::{Group, GroupTotal, Limited};
use crate::machine::program::{Output, Program};
use crate::undo::Undo;

/// The subject.
pub(super) enum Subject {
    /// A program to be started.
    Command,
    /// A process and what it starts.
    Process(Program),
    /// A process in groups of its own.
    Limited(Program, Box<Limited>),
    /// A group that is there.
    Group(Group),
}

/// The end of a subject.
#[derive(Default)]
pub(super) struct SubjectEnd {
    /// Exit code of a program that was started.
    pub code: Option<i32>,
    /// Memory of a group.
    pub group: Option<GroupTotal>,
}

impl Subject {
    /// Found, but not begun.
    pub fn from_args(args: &WatchArgs) -> Result<Subject, LabError> {
        let subject = match (args.pid, &args.unit, &args.cgroup) {
            (Some(pid), ..) => Subject::Process(Program::running(pid)?),
            (_, Some(unit), _) => Subject::Group(Group::of_unit(unit)?),
            (_, _, Some(path)) => Subject::Group(Group::of_path(path)?),
            _ => return Ok(Subject::Command),
        };
        if args.mark_on.is_some() && args.log.is_none() {
            return Err(LabError::Argument(
                "--mark-on needs --log FILE here: the output of a process that runs already cannot be read"
                    .into(),
            ));
        }
        if let Subject::Group(group) = &subject
            && group.pids().is_empty()
        {
            return Err(LabError::Argument("no process is in that control group".into()));
        }
        Ok(subject)
    }

    /// Starts the program, if it is one to be started.
    pub fn begin(self, args: &WatchArgs, marks: &mut Marks, undo: &Undo) -> Result<Subject, LabError> {
        let Subject::Command = self else { return Ok(self) };
        let output = if marks.wants_output() { Output::Piped } else { Output::Inherited };
        let limits = args.limits()?;
        let limited = (!limits.is_empty()).then(|| Limited::make(&limits, undo)).transpose()?;
        limited.iter().filter_map(|limited| limited.caps.as_ref()).for_each(|caps| crate::say!("{caps}"));
        let command = limited.as_ref().map_or_else(|| args.command.clone(), |l| l.enter(&args.command));
        let mut program = Program::start_with(&command, output, undo)?;
        if output == Output::Piped {
            marks.listen_to(&mut program);
        }
        Ok(match limited {
            Some(limited) => Subject::Limited(program, Box::new(limited)),
            None => Subject::Process(program),
        })
    }

    /// Its process, when it is one.
    pub fn pid(&self) -> Option<u32> {
        match self {
            Subject::Process(program) | Subject::Limited(program, _) => Some(program.pid()),
            Subject::Group(_) | Subject::Command => None,
        }
    }

    /// Those of its processes that start all others.
    pub fn pids(&self) -> Vec<u32> {
        match self {
            Subject::Group(group) => group.pids().into_iter().collect(),
            _ => self.pid().into_iter().collect(),
        }
    }

    /// Its processes.
    pub fn tree(&self) -> Tree {
        match self {
            Subject::Process(program) => Tree::new(program.pid()),
            Subject::Limited(program, limited) => {
                let mut tree = Tree::of_group(limited.group.clone());
                tree.add_root(program.pid());
                tree
            }
            Subject::Group(group) => Tree::of_group(group.clone()),
            Subject::Command => Tree::empty(),
        }
    }

    /// As it is called on the page.
    pub fn name(&self, args: &WatchArgs) -> String {
        match (args.pid, &args.unit, &args.cgroup) {
            (Some(pid), ..) => {
                let name = command_line(pid);
                if name.is_empty() { format!("process {pid}") } else { name }
            }
            (_, Some(unit), _) => format!("unit {unit}"),
            (_, _, Some(path)) => format!("control group {}", path.display()),
            _ => args.command.join(" "),
        }
    }

    /// True when there is nothing to be watched any more.
    pub fn is_over(&self) -> bool {
        match self {
            Subject::Process(program) | Subject::Limited(program, _) => program.is_over(),
            Subject::Group(group) => group.pids().is_empty(),
            Subject::Command => true,
        }
    }

    /// The caps of its I/O, and reasons to doubt them at the end.
    pub fn caps(&self) -> (Option<CapsInForce>, Vec<String>) {
        let Subject::Limited(_, limited) = self else { return (None, Vec::new()) };
        let doubt = limited.caps.as_ref().and_then(CapsInForce::doubt);
        (limited.caps.clone(), doubt.into_iter().chain(limited.caps_changed()).collect())
    }

    /// Ends the watch of it.
    pub fn end(self) -> SubjectEnd {
        match self {
            Subject::Process(program) => SubjectEnd { code: program.end().code, group: None },
            Subject::Limited(program, limited) => {
                SubjectEnd { code: program.end().code, group: limited.group.total() }
            }
            Subject::Group(group) => SubjectEnd { code: None, group: group.total() },
            Subject::Command => SubjectEnd::default(),
        }
    }
}

/// The command line of a process; empty when it has none, or is gone.
fn command_line(pid: u32) -> String {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = words.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    words.map(|word| String::from_utf8_lossy(word).into_owned()).collect::<Vec<_>>().join(" ")
}
