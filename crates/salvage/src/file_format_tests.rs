use std::fs::File;
use std::io::Write;

use proptest::prelude::*;
use rusqlite::{Connection, params};

use super::{
    Column, DEFAULT_PAGE_SIZE, FILE_HEADER, LEAF_OF_TABLE, NO_TREE, PageFile, Value, integer, varint,
};

const ROWS: i64 = 60;

/// Numbers of every width that SQLite stores.
const NUMBERS: [i64; 10] = [0, 1, -1, 127, -32_768, 8_388_607, -2_147_483_648, 1 << 40, -(1 << 47), i64::MIN];

fn text_of(row: i64) -> String {
    format!("row {row} ").repeat(if row % 20 == 0 { 2_000 } else { 8 })
}

/// A table of rows short and long: some run over to other pages.
fn a_database(page_size: usize) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some.db");
    let db = Connection::open(&path).unwrap();
    db.pragma_update(None, "page_size", page_size).unwrap();
    db.execute_batch("CREATE TABLE things (id INTEGER PRIMARY KEY, number INTEGER, text TEXT, bytes BLOB)")
        .unwrap();
    db.execute_batch("BEGIN").unwrap();
    for row in 1..=ROWS {
        let number = NUMBERS[row as usize % NUMBERS.len()];
        db.execute(
            "INSERT INTO things VALUES (?1, ?2, ?3, ?4)",
            params![row << 30, number, text_of(row), [7_u8; 32]],
        )
        .unwrap();
    }
    db.execute_batch("COMMIT").unwrap();
    db.close().unwrap();
    std::fs::read(path).unwrap()
}

fn pages_of(bytes: &[u8]) -> PageFile {
    let mut file: File = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    PageFile::open(file).unwrap()
}

/// The rows of `things` in the order of their numbers, and how many bytes were gathered for all rows at most.
fn things_in(bytes: &[u8]) -> (Vec<i64>, usize) {
    let pages = pages_of(bytes);
    let (mut found, mut largest) = (Vec::new(), 0);
    for number in 1..=pages.count() {
        let page = pages.page(number).unwrap();
        for cell in page.cells() {
            let Some(payload) = pages.payload(&page, &cell).unwrap() else { continue };
            largest = largest.max(payload.len());
            let row = cell.row >> 30;
            let right = [
                Value::Null,
                Value::Integer(NUMBERS[row.rem_euclid(NUMBERS.len() as i64) as usize]),
                Value::Text(text_of(row.clamp(0, ROWS)).as_bytes()),
                Value::Blob(&[7; 32]),
            ] == *cell.values(&payload).unwrap();
            if right {
                found.push(row);
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    (found, largest)
}

/// Where the leaves of `things` begin.
fn leaves(bytes: &[u8], page_size: usize) -> Vec<usize> {
    (page_size..bytes.len()).step_by(page_size).filter(|start| bytes[*start] == LEAF_OF_TABLE).collect()
}

fn all_rows() -> Vec<i64> {
    (1..=ROWS).collect()
}

#[test]
fn every_row_of_a_sound_file_is_found_whatever_the_size_of_its_pages() {
    for page_size in [512, 1024, 4096, 65_536] {
        let (found, _) = things_in(&a_database(page_size));

        assert_eq!(found, all_rows(), "pages of {page_size} bytes");
    }
}

#[test]
fn the_size_of_pages_is_the_usual_one_if_the_header_can_not_be_right() {
    for size in [[0x20, 0x00], [0x11, 0x00], [0x00, 0x00], [0xff, 0xff]] {
        let mut bytes = a_database(DEFAULT_PAGE_SIZE);
        bytes[16..18].copy_from_slice(&size);

        let (found, _) = things_in(&bytes);

        assert_eq!(found, all_rows(), "{size:?}");
    }
}

#[test]
fn a_file_without_any_header_is_still_read() {
    let mut bytes = a_database(DEFAULT_PAGE_SIZE);
    bytes[..FILE_HEADER].fill(0xff);

    let (found, _) = things_in(&bytes);

    assert_eq!(found, all_rows());
}

#[test]
fn damage_to_the_header_of_a_leaf_costs_no_row() {
    let sound = a_database(DEFAULT_PAGE_SIZE);
    for leaf in leaves(&sound, DEFAULT_PAGE_SIZE) {
        // The kind of page, the free blocks, the count, the first cell, the fragments, the places of two cells.
        for place in [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11] {
            for value in [0x01, 0x7f, 0xff] {
                let mut bytes = sound.clone();
                bytes[leaf + place] = value;

                let (found, _) = things_in(&bytes);

                assert_eq!(found, all_rows(), "{value:#x} at {place} of the page at {leaf}");
            }
        }
    }
}

#[test]
fn a_count_that_hides_cells_does_not_lose_them() {
    let mut bytes = a_database(DEFAULT_PAGE_SIZE);
    for leaf in leaves(&bytes, DEFAULT_PAGE_SIZE) {
        bytes[leaf + 3..leaf + 5].fill(0);
    }

    let (found, _) = things_in(&bytes);

    assert_eq!(found, all_rows());
}

#[test]
fn a_ring_of_overflow_pages_costs_only_the_row_that_runs_into_it() {
    let mut bytes = a_database(DEFAULT_PAGE_SIZE);
    let text = text_of(20);
    let overflow =
        |page: &&mut [u8]| page[0] == NO_TREE && page.windows(64).any(|part| part == &text.as_bytes()[..64]);
    let (number, page) =
        (1_u32..).zip(bytes.chunks_mut(DEFAULT_PAGE_SIZE)).find(|(_, page)| overflow(page)).unwrap();
    page[..4].copy_from_slice(&number.to_be_bytes());

    let (found, _) = things_in(&bytes);

    assert_eq!(found, all_rows().into_iter().filter(|row| *row != 20).collect::<Vec<_>>());
}

#[test]
fn numbers_are_read_as_sqlite_writes_them() {
    let read = |bytes: &[u8]| {
        let mut at = 0;
        varint(bytes, &mut at).map(|number| (number, at))
    };
    assert_eq!(read(&[0x7f]), Some((127, 1)));
    assert_eq!(read(&[0x81, 0x00]), Some((128, 2)));
    assert_eq!(read(&[0xff; 9]), Some((u64::MAX, 9)));
    assert_eq!(read(&[0x80, 0x80]), None);
    assert_eq!(integer(&[]), 0);
    assert_eq!(integer(&[0xff, 0xfe]), -2);
    assert_eq!(integer(&i64::MIN.to_be_bytes()), i64::MIN);
    assert_eq!(Column::of(10), None);
    assert_eq!(Column::of(13), Some(Column::Text(0)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_bytes_are_read_without_harm(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..5 * DEFAULT_PAGE_SIZE),
        leaves in any::<u8>(),
    ) {
        // Few random bytes would be taken for a leaf at all.
        for page in 0..5 {
            let place = page * DEFAULT_PAGE_SIZE + if page == 0 { FILE_HEADER } else { 0 };
            if leaves >> page & 1 == 1 && place < bytes.len() {
                bytes[place] = LEAF_OF_TABLE;
            }
        }

        let (_, largest) = things_in(&bytes);

        prop_assert!(largest <= bytes.len().next_multiple_of(DEFAULT_PAGE_SIZE));
    }

    #[test]
    fn a_damaged_file_yields_rows_of_it_and_nothing_worse(
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..200),
    ) {
        let mut bytes = a_database(DEFAULT_PAGE_SIZE);
        for (place, value) in damage {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }

        let (_, largest) = things_in(&bytes);

        prop_assert!(largest <= bytes.len());
    }
}
