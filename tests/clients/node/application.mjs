// What each of these programs is: an application that is given jobs and tells what it saw of each.
//
// A job is a line of JSON on standard input: `run` is its number, `way` how to ask, `base` where, `n` how many choices
// to ask for. Several can be under way. What is told is a line of JSON on standard output with the number of its run;
// the first line says which client this is. It ends with its input.

import { createInterface } from 'node:readline'

import { client, tell } from './report.mjs'

/** What the application was asked to do, and where it tells what it saw. */
class Run {
  #number

  constructor({ run, base, n }) {
    this.#number = run
    this.base = base
    this.n = n
  }

  /** The head of a response has come. */
  head(headers) {
    this.#tell({ head: headers.get('x-streamweld-stream-id') })
  }

  /** The application was given this object by its client, here as plain data, whole. */
  object(object) {
    this.#tell({ object: object ?? null })
  }

  /** That object held a part of the text. */
  text(text) {
    if (text) this.#tell({ text })
  }

  /** The stream came to an end that the application takes for a proper one. */
  whole(finish) {
    this.#tell({ whole: finish ?? null })
  }

  /** The application was given an exception. */
  raised(error) {
    const cause = error.cause ? `: ${error.cause.message}` : ''
    this.#tell({ raised: error.constructor.name, message: `${error.message}${cause}` })
  }

  #tell(fields) {
    tell({ run: this.#number, ...fields })
  }
}

/**
 * Does the jobs that come. A way is a function of a run that gives the finish reason. `others` are packages that belong
 * to the client.
 */
export function serve(name, ways, others = []) {
  client(name, others)
  createInterface({ input: process.stdin }).on('line', async (line) => {
    const job = JSON.parse(line)
    const run = new Run(job)
    try {
      run.whole(await ways[job.way](run))
    } catch (error) {
      // Whatever an application would see.
      run.raised(error)
    }
  })
}
