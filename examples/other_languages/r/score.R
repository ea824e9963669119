# Score rows with librankcore from R.
#
#     Rscript score.R GLUE MODEL < rows.svm      (GLUE: glue.so, see README.md)

arguments <- commandArgs(trailingOnly = TRUE)
if (length(arguments) != 2) stop("usage: Rscript score.R GLUE MODEL < rows.svm")
dyn.load(arguments[1])

read_rows <- function(lines) {
  lines <- trimws(sub("#.*", "", lines))
  items <- strsplit(lines[lines != ""], "[ \t]+")
  items <- lapply(items, function(row) grep("^qid:", row[-1], value = TRUE, invert = TRUE))
  words <- strsplit(as.character(unlist(items)), ":")
  list(
    values = .Call("r_numbers", vapply(words, `[`, "", 2)),
    columns = as.integer(vapply(words, `[`, "", 1)) - 1L,
    offsets = cumsum(c(0, lengths(items)))
  )
}

main <- function() {
  model <- .Call("r_open", arguments[2])
  labels <- .Call("r_labels", model)
  rows <- read_rows(readLines(file("stdin")))
  answer <- .Call("r_answer", model, rows$values, rows$columns, rows$offsets)
  text <- function(numbers) sprintf("%.17g", numbers)
  found <- text(answer[[1]])
  found <- paste(found, if (is.null(answer[[2]])) "-" else labels[answer[[2]] + 1])
  if (!is.null(answer[[3]]))
    found <- paste(found, apply(answer[[3]], 2, function(p) paste(text(p), collapse = " ")))
  writeLines(found)
}

tryCatch(main(), error = function(condition) {
  message(conditionMessage(condition))
  quit(status = 1)
})
