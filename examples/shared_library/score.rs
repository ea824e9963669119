// Score rows with librankcore from Rust.
//
//     rustc -O -L FOLDER_OF_THE_LIBRARY -l rankcore score.rs
//     ./score MODEL < rows.svm
//
// Prints the label, or the score of a ranker, of each line of svmlight text.

use std::ffi::{c_char, CStr, CString};
use std::io::BufRead;

#[repr(C)]
struct Handle {
    private: [u8; 0],
}

extern "C" {
    fn rankcore_open(path: *const c_char, error: *mut c_char, size: usize) -> *mut Handle;
    fn rankcore_close(model: *mut Handle);
    fn rankcore_n_ranks(model: *const Handle) -> i32;
    fn rankcore_label(model: *const Handle, rank: i32, label: *mut c_char, size: usize) -> i64;
    fn rankcore_csr(
        model: *const Handle,
        values: *const f64,
        columns: *const i32,
        offsets: *const i64,
        n_rows: i64,
        scores: *mut f64,
        ranks: *mut i32,
    ) -> i32;
    fn rankcore_message(code: i32) -> *const c_char;
}

/// An open model. The library never writes to one, so threads may share it.
struct Model(*mut Handle);
unsafe impl Send for Model {}
unsafe impl Sync for Model {}

impl Drop for Model {
    fn drop(&mut self) {
        unsafe { rankcore_close(self.0) }
    }
}

fn text(buffer: &[u8]) -> String {
    CStr::from_bytes_until_nul(buffer).map_or(String::new(), |s| s.to_string_lossy().into_owned())
}

impl Model {
    fn open(path: &str) -> Result<Model, String> {
        let path = CString::new(path).map_err(|e| e.to_string())?;
        let mut error = [0u8; 200];
        let found = unsafe { rankcore_open(path.as_ptr(), error.as_mut_ptr().cast(), error.len()) };
        if found.is_null() {
            return Err(text(&error));
        }
        Ok(Model(found))
    }

    fn answer(&self, values: &[f64], columns: &[i32]) -> Result<String, String> {
        assert_eq!(values.len(), columns.len());
        let offsets = [0, values.len() as i64];
        let (mut score, mut rank) = (0.0f64, 0i32);
        let ordinal = unsafe { rankcore_n_ranks(self.0) } > 0;
        let ranks: *mut i32 = if ordinal { &mut rank } else { std::ptr::null_mut() };
        let code = unsafe {
            rankcore_csr(self.0, values.as_ptr(), columns.as_ptr(), offsets.as_ptr(), 1, &mut score, ranks)
        };
        if code != 0 {
            let words = unsafe { CStr::from_ptr(rankcore_message(code)) };
            return Err(words.to_string_lossy().into_owned());
        }
        if !ordinal {
            return Ok(format!("{score:?}"));
        }
        let mut label = [0u8; 200];
        unsafe { rankcore_label(self.0, rank, label.as_mut_ptr().cast(), label.len()) };
        Ok(text(&label))
    }
}

fn run() -> Result<(), String> {
    let path = std::env::args().nth(1).ok_or("usage: score MODEL < rows.svm")?;
    let model = Model::open(&path)?;
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|e| e.to_string())?;
        let (mut values, mut columns) = (Vec::new(), Vec::new());
        let mut items = line.split('#').next().unwrap_or("").split_whitespace();
        if items.next().is_none() {
            continue; // a blank line, or a comment; else that was the label
        }
        for item in items {
            let (name, value) = item.split_once(':').ok_or(format!("{item} has no colon"))?;
            if name != "qid" {
                let column: i32 = name.parse().map_err(|_| format!("{name} is no column"))?;
                columns.push(column - 1);
                values.push(value.parse().map_err(|_| format!("{value} is no number"))?);
            }
        }
        println!("{}", model.answer(&values, &columns)?);
    }
    Ok(())
}

fn main() {
    if let Err(message) = run() {
        eprintln!("{message}");
        std::process::exit(1);
    }
}
