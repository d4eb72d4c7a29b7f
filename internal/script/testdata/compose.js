// Composes builtins at random: each step calls one with results of earlier steps, or puts
// one where the language itself calls it. Steps that throw are skipped.
function (seed, steps) {
  let state = seed >>> 0 || 1;
  const below = (n) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state % n;
  };
  const one = (list) => list[below(list.length)];

  // Every builtin that can be reached, and the objects that hold them.
  const natives = [];
  const holders = [];
  const seen = new Set();
  const find = (o) => {
    if (o === null || (typeof o !== "object" && typeof o !== "function") || seen.has(o)) return;
    seen.add(o);
    if (typeof o === "function") natives.push(o);
    else holders.push(o);
    for (const name of Reflect.ownKeys(o)) {
      const d = Reflect.getOwnPropertyDescriptor(o, name);
      for (const v of [d.value, d.get, d.set]) find(v);
    }
    find(Reflect.getPrototypeOf(o));
  };
  find(globalThis);
  [[].values(), "".matchAll(/x/g), new Map().keys(), new Set().keys(), (function* () {})(), (async () => 0)(), ""[Symbol.iterator]()].forEach(find);
  const { apply, construct } = Reflect;
  const bind = Function.prototype.bind;
  const run = eval;

  let text = "x".repeat(1 << 16);
  const pool = [
    undefined, null, true, 0, -1, 1, 3, 1e5, 2 ** 31, 2 ** 32 - 1, 2 ** 53 - 1, NaN, Infinity, "", "a", text, "\ufdfa".repeat(1e3), "a".repeat(40) + "b", "[".repeat(1e4), "NFKD", "(".repeat(1e3),
    2n ** 64n, -1n, 2n ** 4096n, [], [1, 2, 3], new Array(1e5).fill(0), { length: 2 ** 32 - 1 }, { length: 2 ** 53 - 1 }, {}, /(a+)+b/g, /(?:)/g, /^(a|aa)+\1$/y, Symbol.iterator,
    () => 1, (x) => x, function () { return this; }, new Map([[1, 2]]), new Set([1]), new WeakMap(), new Uint8Array(1e4), new Float64Array(16), new ArrayBuffer(1e5), new DataView(new ArrayBuffer(64)),
    new Date(), Promise.resolve(1), new Error("e"), globalThis, ...holders,
  ];
  const names = ["length", "then", "next", "done", "value", "valueOf", "toString", "toJSON", "constructor", "lastIndex", "exec", "flags", "return", "0", "get", "has", "ownKeys", "getPrototypeOf", "raw", "size", "add", "set",
    Symbol.iterator, Symbol.species, Symbol.toPrimitive, Symbol.match, Symbol.replace, Symbol.split, Symbol.isConcatSpreadable, Symbol.hasInstance];
  const texts = ["(()=>{", "[".repeat(200), "`${", "1,".repeat(1e4) + "1", "(function*(){yield*", "class A{#x=", "(a=", "/(a+)+/.test('", "x=>", "new.target", "//# sourceMappingURL=/etc/passwd\n1"];
  const value = () => (below(3) ? one(pool) : pool[pool.length - 1 - below(Math.min(8, pool.length))]);
  const args = () => Array.from({ length: below(4) }, value);
  const bound = () => apply(bind, one(natives), [value(), ...args()]);
  const iterable = () => {
    const result = below(2) ? { value: value(), done: false } : value();
    const next = below(2) ? apply(bind, Reflect.get, [null, { r: result }, "r"]) : bound();
    return { [Symbol.iterator]: () => ({ next }) };
  };
  const actions = [
    () => apply(one(natives), value(), args()),
    () => apply(one(natives), value(), args()),
    () => apply(one(natives), value(), args()),
    () => construct(one(natives), args()),
    () => bound(),
    () => iterable(),
    () => [...(below(2) ? iterable() : value())],
    () => { const [a, , ...b] = below(2) ? iterable() : value(); return b; },
    () => { for (const v of iterable()) pool.push(v); },
    () => one(natives)(...value()),
    () => { value()[one(names)] = value(); },
    () => { value()[one(names)] = bound(); },
    () => Reflect.defineProperty(value(), one(names), { get: bound(), configurable: true }),
    () => Reflect.setPrototypeOf(value(), value()),
    () => new Proxy(Object(value()), Object.fromEntries(["get", "has", "ownKeys", "getPrototypeOf", "apply", "construct", "set"].map((trap) => [trap, below(2) ? bound() : undefined]))),
    () => { const v = value(); return (function* () { yield* v; })(); },
    () => { let g = iterable(); for (let i = below(1e5); i > 0; i--) { const inner = g; g = (function* () { yield* inner; })(); } return g; },
    () => { let a = value(); for (let i = below(1e5); i > 0; i--) a = [a]; return a; },
    () => { let a = value(); for (let i = below(60); i > 0; i--) a = [a, a]; return a; },
    () => { let f = one(natives); for (let i = below(1e4); i > 0; i--) f = apply(bind, f, [value()]); return f; },
    () => { text += text; return text + value(); },
    () => `${value()}${value()}`,
    () => value() + value(),
    () => value() ** value(),
    () => value() << value(),
    () => JSON.stringify(value(), value(), value()),
    () => run(one(texts).repeat(1 + below(200))),
    () => new Function("a", "return " + one(texts).repeat(1 + below(20)))(value()),
    () => new RegExp(String(value()).slice(0, 1e4), "g"),
    () => { Promise.resolve(value()).then(bound(), bound()); },
    () => { const o = {}; o.then = bound(); Promise.resolve(o); },
    () => (async () => { for (const v of iterable()) await v; })(),
    () => value().sort(bound()),
    () => String(value()).replace(value(), bound()),
  ];
  let done = 0;
  for (let i = 0; i < steps; i++) {
    try {
      const v = one(actions)();
      if (pool.length < 500) pool.push(v);
      else pool[below(pool.length)] = v;
      done++;
    } catch (e) {}
  }
  return below(4) ? done : value();
}
