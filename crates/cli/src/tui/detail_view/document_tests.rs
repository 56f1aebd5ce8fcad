use super::*;

fn document(text: &str, width: u16) -> DetailDocument {
    let head = vec![StyledLine::raw("head"), StyledLine::default()];
    DetailDocument { head, output: OutputPages::of_text(text), width }
}

fn at(line: usize, row: usize) -> RowPosition {
    RowPosition { line, row }
}

fn shown(rows: &[StyledLine]) -> Vec<String> {
    rows.iter().map(|row| row.to_string().trim_end().to_owned()).collect()
}

#[test]
fn rows_of_wrapped_lines_are_scrolled_one_by_one() {
    let mut document = document("one two three\nfour\nfive\n", 8);

    assert_eq!(shown(&document.page(at(0, 0), 4, None)), ["head", "", "  one", "  two"]);
    assert_eq!(document.down(at(2, 0), 1, 2), at(2, 1));
    assert_eq!(shown(&document.page(at(2, 1), 2, None)), ["  two", "  three"]);
    assert_eq!(document.down(at(0, 0), 100, 2), at(3, 0));
    assert_eq!(document.last_top(100), at(0, 0));
    assert_eq!(document.up(at(3, 0), 1), at(2, 2));
    assert_eq!(document.up(at(3, 0), 100), at(0, 0));
}

#[test]
fn a_search_goes_on_at_the_other_end() {
    let mut document = document("alpha\nbeta\nALPHA\n", 20);
    let pattern = SearchPattern::new("alpha").unwrap();
    let nowhere = SearchPattern::new("gamma").unwrap();

    assert_eq!(document.find(&pattern, 0, SearchDirection::Forward), Some(2));
    assert_eq!(document.find(&pattern, 3, SearchDirection::Forward), Some(4));
    assert_eq!(document.find(&pattern, 0, SearchDirection::Backward), Some(4));
    assert_eq!(document.find(&nowhere, 0, SearchDirection::Forward), None);
    let row = &document.rows(4, Some(&pattern))[0];
    assert_eq!(row.spans[1].content, "ALPHA");
    assert_eq!(row.spans[1].style, MATCH_STYLE);
}

#[test]
fn an_empty_document_breaks_nothing() {
    let mut empty = DetailDocument { head: vec![], output: OutputPages::of_text(""), width: 1 };
    let pattern = SearchPattern::new("x").unwrap();

    assert_eq!(empty.down(at(0, 0), 5, 1), at(0, 0));
    assert_eq!(empty.find(&pattern, 0, SearchDirection::Backward), None);
    assert!(empty.page(at(0, 0), 5, None).is_empty());
}
