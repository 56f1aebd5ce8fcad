//! What is different between two texts, line by line.

/// So many lines that are the same stand around those that are not.
const AROUND: usize = 2;
/// Tables of more entries than this are not made: then all old lines go and all new ones come.
const LARGEST_TABLE: usize = 4 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step<'a> {
    Same(&'a str),
    Gone(&'a str),
    New(&'a str),
}

/// The lines that went, with `-` before them, and those that came, with `+`, among a few that stayed. Empty, if nothing is different.
pub(crate) fn difference(before: &str, after: &str) -> String {
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let steps = steps(&before, &after);
    let differs: Vec<usize> = steps
        .iter()
        .enumerate()
        .filter(|(_, step)| !matches!(step, Step::Same(_)))
        .map(|(place, _)| place)
        .collect();
    let is_near = |place: usize| {
        let next = differs.partition_point(|differing| *differing + AROUND < place);
        differs.get(next).is_some_and(|differing| *differing <= place + AROUND)
    };
    let mut text = String::new();
    let mut left_out = false;
    for (place, step) in steps.iter().enumerate() {
        if !is_near(place) {
            left_out = true;
            continue;
        }
        if std::mem::take(&mut left_out) {
            text.push_str(" …\n");
        }
        let (sign, line) = match step {
            Step::Same(line) => (' ', line),
            Step::Gone(line) => ('-', line),
            Step::New(line) => ('+', line),
        };
        text.push(sign);
        text.push_str(line);
        text.push('\n');
    }
    if left_out && !text.is_empty() {
        text.push_str(" …\n");
    }
    text
}

/// The shortest way from one to the other, by the longest list of lines that both have.
fn steps<'a>(before: &[&'a str], after: &[&'a str]) -> Vec<Step<'a>> {
    let same_head = before.iter().zip(after).take_while(|(old, new)| old == new).count();
    let (head, before, after) = (&before[..same_head], &before[same_head..], &after[same_head..]);
    let same_tail = before.iter().rev().zip(after.iter().rev()).take_while(|(old, new)| old == new).count();
    let (before, tail) = before.split_at(before.len() - same_tail);
    let after = &after[..after.len() - same_tail];
    let mut steps: Vec<Step<'_>> = head.iter().map(|line| Step::Same(line)).collect();
    steps.extend(middle(before, after));
    steps.extend(tail.iter().map(|line| Step::Same(line)));
    steps
}

fn middle<'a>(before: &[&'a str], after: &[&'a str]) -> Vec<Step<'a>> {
    let width = after.len() + 1;
    if (before.len() + 1).saturating_mul(width) > LARGEST_TABLE {
        let gone = before.iter().map(|line| Step::Gone(line));
        return gone.chain(after.iter().map(|line| Step::New(line))).collect();
    }
    // `common[old * width + new]`: how many lines the two have in common from there on.
    let mut common = vec![0u32; (before.len() + 1) * width];
    for old in (0..before.len()).rev() {
        for new in (0..after.len()).rev() {
            common[old * width + new] = if before[old] == after[new] {
                common[(old + 1) * width + new + 1] + 1
            } else {
                common[(old + 1) * width + new].max(common[old * width + new + 1])
            };
        }
    }
    let (mut old, mut new) = (0, 0);
    let mut steps = Vec::new();
    while old < before.len() || new < after.len() {
        if old < before.len() && new < after.len() && before[old] == after[new] {
            steps.push(Step::Same(before[old]));
            (old, new) = (old + 1, new + 1);
        } else if old < before.len()
            && (new == after.len() || common[(old + 1) * width + new] >= common[old * width + new + 1])
        {
            steps.push(Step::Gone(before[old]));
            old += 1;
        } else {
            steps.push(Step::New(after[new]));
            new += 1;
        }
    }
    steps
}

#[cfg(test)]
#[path = "difference_tests.rs"]
mod tests;
