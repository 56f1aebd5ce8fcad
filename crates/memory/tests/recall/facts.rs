//! What is said in the conversations, and what is asked about it later: subjects, attributes and sentences, put together by rule.

/// What the conversations are about.
pub(crate) const SUBJECTS: [&str; 24] = [
    "ferry booking",
    "harbour archive",
    "tide forecast",
    "crane scheduler",
    "pilot roster",
    "lighthouse monitor",
    "customs desk",
    "cargo ledger",
    "berth planner",
    "fuel depot",
    "radar console",
    "weather buoy",
    "ticket office",
    "salvage fleet",
    "dock payroll",
    "quay parking",
    "sailing school",
    "rescue station",
    "net workshop",
    "fish auction",
    "map printer",
    "signal tower",
    "ice plant",
    "rope factory",
];

/// Something that each of them has. `{s}` is the subject, `{v}` the value.
pub(crate) struct Attribute {
    pub(crate) name: &'static str,
    pub(crate) question: &'static str,
    /// Says it in the words of the question.
    plain: &'static str,
    /// Says it in others, but for the name of the subject.
    paraphrase: &'static str,
    /// Says it in other forms of the same words.
    forms: &'static str,
    /// The question as it was asked when nobody knew yet.
    asked: &'static str,
    value: fn(usize) -> String,
}

pub(crate) const ATTRIBUTES: [Attribute; 10] = [
    Attribute {
        name: "port",
        question: "Which port does the {s} server use?",
        plain: "The port that the {s} server is to use is {v}.",
        paraphrase: "The {s} machine listens on {v}.",
        forms: "Ports of our servers for the {s}: {v} and no others.",
        asked: "Which port should the {s} server get?",
        value: |number| (4_000 + number * 37).to_string(),
    },
    Attribute {
        name: "owner",
        question: "Who owns the {s} project?",
        plain: "The person who owns the {s} project is {v}.",
        paraphrase: "{v} answers for everything about the {s}.",
        forms: "{v} has been the owner of all {s} projects since spring.",
        asked: "Who is going to own the {s} project?",
        value: |number| {
            let first = ["Mira", "Jonas", "Petra", "Olaf", "Signe", "Tomas"][number % 6];
            format!("{first} {}", ["Holm", "Vik", "Sund", "Berg"][number / 6 % 4])
        },
    },
    Attribute {
        name: "deadline",
        question: "What is the deadline of the {s} work?",
        plain: "The deadline of the {s} work is {v}.",
        paraphrase: "Everything for the {s} has to be finished by {v}.",
        forms: "We have two deadlines, and that of working on the {s} is {v}.",
        asked: "Which deadline do we give to the {s} work?",
        value: |number| format!("{} {}", 1 + number % 28, ["March", "April", "May", "June"][number % 4]),
    },
    Attribute {
        name: "database",
        question: "Which database does the {s} store its records in?",
        plain: "The {s} is to store its records in the {v} database.",
        paraphrase: "Rows of the {s} end up in {v}.",
        forms: "Of all databases, {v} is where the {s} has been storing each record.",
        asked: "In which database should the {s} store its records?",
        value: |number| format!("{}db{number}", ["slate", "coral", "amber", "flint"][number % 4]),
    },
    Attribute {
        name: "language",
        question: "What language is the {s} written in?",
        plain: "The language that the {s} is written in is {v}.",
        paraphrase: "All code of the {s} is {v}.",
        forms: "Of the languages that we know, {v} is the one for writing the {s}.",
        asked: "In what language should the {s} be written?",
        value: |number| ["Rust", "Elixir", "Kotlin", "Haskell", "Python", "Zig"][number % 6].to_owned(),
    },
    Attribute {
        name: "deployment",
        question: "When do we deploy the {s}?",
        plain: "We deploy the {s} every {v}.",
        paraphrase: "New versions of the {s} go live on {v}.",
        forms: "Deployments of the {s} happen on {v}.",
        asked: "When should we deploy the {s}?",
        value: |number| {
            let day = ["Monday", "Tuesday", "Wednesday", "Thursday"][number % 4];
            format!("{day} at {}:{:02}", 6 + number % 12, number * 7 % 60)
        },
    },
    Attribute {
        name: "budget",
        question: "How large is the budget for the {s}?",
        plain: "The budget for the {s} is as large as {v} crowns.",
        paraphrase: "For the {s} we may spend {v} crowns.",
        forms: "Of this year's budgets, {v} crowns are for the {s}, which is the largest part.",
        asked: "How large should the budget for the {s} be?",
        value: |number| (12_000 + number * 450).to_string(),
    },
    Attribute {
        name: "room",
        question: "In which room do we meet about the {s}?",
        plain: "We meet about the {s} in room {v}.",
        paraphrase: "The weekly round for the {s} takes place in {v}.",
        forms: "Meetings about the {s} have their rooms: {v}.",
        asked: "In which room shall we meet about the {s}?",
        value: |number| format!("{}-{}", ["B", "C", "D"][number % 3], 100 + number * 3),
    },
    Attribute {
        name: "indentation",
        question: "Which indentation do I prefer in the {s} code?",
        plain: "In the {s} code I prefer an indentation of {v}.",
        paraphrase: "Please begin lines of the {s} files with {v}.",
        forms: "My preference for indenting the {s} code: {v}.",
        asked: "Which indentation do you prefer in the {s} code?",
        value: |number| format!("{} {}", 2 + number % 7, ["spaces", "tabs"][number % 2]),
    },
    Attribute {
        name: "migration",
        question: "Why did the migration of the {s} fail?",
        plain: "The migration of the {s} did fail, and the reason is {v}.",
        paraphrase: "Moving the {s} over did not work out: {v}.",
        forms: "When we were migrating the {s}, it failed on account of {v}.",
        asked: "Why did it fail, the migration of the {s}?",
        value: |number| {
            let what = ["a missing index", "a full disk", "an expired key", "a wrong zone"][number % 4];
            format!("{what} on node {}", 20 + number)
        },
    },
];

/// How a fact was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Told {
    Plainly,
    InOtherForms,
    InOtherWords,
    AsAnAnswer,
    ByATool,
    AndCorrected,
}

impl Told {
    pub(crate) const ALL: [Self; 6] = [
        Self::Plainly,
        Self::InOtherForms,
        Self::InOtherWords,
        Self::AsAnAnswer,
        Self::ByATool,
        Self::AndCorrected,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plainly => "in the words of the question",
            Self::InOtherForms => "in other forms of its words",
            Self::InOtherWords => "in other words",
            Self::AsAnAnswer => "in an answer that repeats no word of what it answers",
            Self::ByATool => "in a file that a tool showed",
            Self::AndCorrected => "and corrected later",
        }
    }
}

/// Something to remember.
pub(crate) struct Fact {
    pub(crate) number: usize,
    pub(crate) told: Told,
    pub(crate) subject: &'static str,
    pub(crate) attribute: &'static Attribute,
}

/// All of them, each kind of telling as often.
pub(crate) fn facts() -> Vec<Fact> {
    let count = SUBJECTS.len() * ATTRIBUTES.len();
    let fact = |number: usize| {
        let (subject, attribute) = (number % SUBJECTS.len(), number / SUBJECTS.len());
        Fact {
            number,
            told: Told::ALL[(subject + attribute) % Told::ALL.len()],
            subject: SUBJECTS[subject],
            attribute: &ATTRIBUTES[attribute],
        }
    };
    (0..count).map(fact).collect()
}

impl Fact {
    pub(crate) fn question(&self) -> String {
        self.fill(self.attribute.question, "")
    }

    pub(crate) fn value(&self) -> String {
        (self.attribute.value)(self.number)
    }

    /// What was taken for true before it was corrected.
    fn old_value(&self) -> String {
        (self.attribute.value)(self.number + 5)
    }

    pub(crate) fn statement(&self) -> String {
        let template = match self.told {
            Told::Plainly | Told::AsAnAnswer | Told::ByATool | Told::AndCorrected => self.attribute.plain,
            Told::InOtherWords => self.attribute.paraphrase,
            Told::InOtherForms => self.attribute.forms,
        };
        self.fill(template, &self.value())
    }

    pub(crate) fn old_statement(&self) -> String {
        self.fill(self.attribute.plain, &self.old_value())
    }

    pub(crate) fn correction(&self) -> String {
        format!("Correction. {} Forget what I said before.", self.statement())
    }

    pub(crate) fn asked(&self) -> String {
        self.fill(self.attribute.asked, "")
    }

    pub(crate) fn answer(&self) -> String {
        let value = self.value();
        match self.number % 3 {
            0 => format!("Let us say {value}."),
            1 => format!("I would take {value}, unless somebody objects."),
            _ => format!("As far as I can see: {value}."),
        }
    }

    /// A file with this and other things in it.
    pub(crate) fn file(&self) -> String {
        let Self { subject, attribute, .. } = self;
        let section = subject.replace(' ', "_");
        format!(
            "# made by hand\n[{section}]\nlevel = 3\n{} = \"{}\"\nverbose = false\n",
            attribute.name,
            self.value()
        )
    }

    fn fill(&self, template: &str, value: &str) -> String {
        template.replace("{s}", self.subject).replace("{v}", value)
    }
}
