// Asks Perfetto's own trace processor, as its page runs it (WebAssembly), about a trace.
//
//     node perfetto_query.mjs FOLDER TRACE SQL...
//
// FOLDER holds trace_processor.wasm, the worker around it (engine_bundle.node.js) and the client (engine.mjs). Prints a
// line of JSON for each query: its rows, as objects. Ends with 1 and a word where Perfetto refuses the trace.
import {readFileSync} from 'node:fs';
import {pathToFileURL} from 'node:url';
import {runInThisContext} from 'node:vm';

const [folder, trace, ...queries] = process.argv.slice(2);

/// What the worker asks its browser for: one file, at once.
class FileRequest {
  open(method, name) {
    this.name = name;
  }
  send() {
    this.response = readFileSync(`${folder}/${this.name}`);
  }
}

/// Starts the worker in this thread; it answers at the port.
function startWorker(port) {
  Object.assign(globalThis, {self: globalThis, WorkerGlobalScope: Object, XMLHttpRequest: FileRequest});
  globalThis.location = {href: pathToFileURL(`${folder}/`).href};
  const source = readFileSync(`${folder}/engine_bundle.node.js`, 'utf8');
  runInThisContext(source.replace('= hasMemory64Support()', '= false'));  // the file for 64 bits is not there
  globalThis.onmessage({data: port});
}

async function connect() {
  const {EngineBase} = await import(pathToFileURL(`${folder}/engine.mjs`).href);
  class Engine extends EngineBase {
    constructor(port) {
      super();
      this.port = port;
      port.onmessage = (message) => this.onRpcResponseBytes(message.data);
    }
    rpcSendRequestBytes(data) {
      this.port.postMessage(data);
    }
  }
  const {port1, port2} = new MessageChannel();
  startWorker(port1);
  return new Engine(port2);
}

function rowsOf(result) {
  const rows = [], names = result.columns();
  for (const row = result.iter({}); row.valid(); row.next()) {
    rows.push(Object.fromEntries(names.map((name) => [name, row.get(name)])));
  }
  return rows;
}

const plain = (key, value) => typeof value === 'bigint' ? Number(value) : value;
console.warn = () => {};  // it tells of fields that are newer than the client
const engine = await connect();
await engine.parse(readFileSync(trace));
await engine.notifyEof();
for (const query of queries) console.log(JSON.stringify(rowsOf(await engine.query(query)), plain));
process.exit(0);
