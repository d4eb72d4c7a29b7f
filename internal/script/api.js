// SPDX-License-Identifier: MIT

// The API of stored procedures and triggers: getContext(), __, console and ErrorCodes.
// Operations are handed to the host as JSON. They are done after the function has returned,
// in order, and then their callbacks are called.
(function (host) {
  "use strict";

  const { parse, stringify } = JSON;
  const NumberedError = Error;

  const ErrorCodes = Object.freeze({
    BadRequest: 400, Forbidden: 403, NotFound: 404, Conflict: 409, PreconditionFailed: 412,
    RequestEntityTooLarge: 413, RetryWith: 449, InternalServerError: 500,
  });

  function failure(status, text) {
    return new NumberedError(status, stringify({ Errors: [text] }));
  }

  /** Hands an operation to the host, if the host still accepts operations. */
  function operate(name, args, callback, answer) {
    if (callback !== undefined && typeof callback !== "function") {
      throw new NumberedError(ErrorCodes.BadRequest, "The callback is not a function.");
    }
    const request = stringify(args);
    if (!host.accepts()) return false;
    host.later(function () {
      const reply = parse(host.operate(name, request));
      const err = reply.status ? failure(reply.status, reply.text) : undefined;
      if (err && !callback) throw err;
      if (callback) answer(callback, err, reply);
    });
    return true;
  }

  function withResource(callback, err, reply) {
    callback(err, reply.resource, reply.options || {});
  }
  function withoutResource(callback, err, reply) {
    callback(err, reply.options || {});
  }

  /** Separates options and a callback, either of which may be missing. */
  function tail(options, callback) {
    if (typeof options === "function" && callback === undefined) return { options: {}, callback: options };
    return { options: options || {}, callback };
  }

  const collection = {
    getSelfLink: () => host.selfLink,
    getAltLink: () => host.altLink,
    readDocument(link, options, callback) {
      const t = tail(options, callback);
      return operate("read", { link, options: t.options }, t.callback, withResource);
    },
    readDocuments(link, options, callback) {
      const t = tail(options, callback);
      return operate("query", { link, query: "SELECT * FROM c", options: t.options }, t.callback, withResource);
    },
    queryDocuments(link, query, options, callback) {
      const t = tail(options, callback);
      return operate("query", { link, query, options: t.options }, t.callback, withResource);
    },
    createDocument(link, body, options, callback) {
      const t = tail(options, callback);
      return operate("create", { link, body, options: t.options }, t.callback, withResource);
    },
    upsertDocument(link, body, options, callback) {
      const t = tail(options, callback);
      return operate("upsert", { link, body, options: t.options }, t.callback, withResource);
    },
    replaceDocument(link, body, options, callback) {
      const t = tail(options, callback);
      return operate("replace", { link, body, options: t.options }, t.callback, withResource);
    },
    deleteDocument(link, options, callback) {
      const t = tail(options, callback);
      return operate("delete", { link, options: t.options }, t.callback, withoutResource);
    },
  };

  const asText = (v) => (typeof v === "string" ? v : stringify(v));

  /** The text of a line of the log: %s and the like in the first value are replaced by the others. */
  function formatted(args) {
    const shown = args.map((v) => (v === undefined ? "undefined" : asText(v)));
    if (typeof args[0] !== "string") return shown.join(" ");
    let used = 1;
    shown[0] = args[0].replace(/%[sdifjoO%]/g, (place) => (place === "%%" ? "%" : used < shown.length ? shown[used++] : place));
    return [shown[0], ...shown.slice(used)].join(" ");
  }

  /**
   * A request or a response: named values, of which only the body can be changed, and not
   * even that if fixed is set. A value is JSON from outside, or a value that the script has
   * set: that is written when the script has ended, with later changes to it.
   */
  function message(values, fixed) {
    const known = (name) => {
      if (!(name in values)) throw new NumberedError(ErrorCodes.BadRequest, "There is no value '" + name + "'.");
    };
    const m = {
      getValue(name) {
        known(name);
        const { json, value } = values[name];
        return json === undefined ? value : parse(json);
      },
      setValue(name, value) {
        known(name);
        if (fixed || name !== "Body") throw new NumberedError(ErrorCodes.Forbidden, "The value '" + name + "' cannot be changed.");
        values[name] = { value };
      },
      appendValue(name, v) {
        const was = m.getValue(name);
        m.setValue(name, was === undefined || was === null ? v : asText(was) + asText(v));
      },
      setBody: (v) => m.setValue("Body", v),
      appendBody: (v) => m.appendValue("Body", v),
    };
    Object.keys(values).forEach((name) => (m["get" + name] = () => m.getValue(name)));
    return m;
  }

  /** The body of a message when the script has ended, as JSON. */
  function written({ Body: { json, value } }) {
    const text = json === undefined ? stringify(value) : json;
    if (text !== undefined && text.length > host.maxBody) {
      throw new NumberedError(ErrorCodes.RequestEntityTooLarge, "The body is too large.");
    }
    return text;
  }

  const requestValues = { Body: { json: host.requestBody }, OperationType: { value: host.operation || undefined } };
  const responseValues = { Body: { json: host.responseBody } };
  const request = message(requestValues, host.operation && host.hasResponse); // fixed after the operation
  const response = message(responseValues, false);

  // The steps of a chain: each makes a new list from a list.
  const steps = {
    filter: (list, test) => list.filter((v) => test(v)),
    map: (list, make) => list.map((v) => make(v)),
    pluck: (list, name) => list.map((v) => v[name]).filter((v) => v !== undefined),
    flatten: (list, shallow) => list.flat(shallow === true ? 1 : Infinity),
    sortBy: (list, by) => sorted(list, by, 1),
    sortByDescending: (list, by) => sorted(list, by, -1),
    unwind(list, inner, make) {
      const all = [];
      list.forEach((v) => (inner(v) || []).forEach((w) => all.push(make ? make(v, w) : [v, w])));
      return all;
    },
  };
  const arity = { filter: 1, map: 1, pluck: 1, flatten: 1, sortBy: 1, sortByDescending: 1, unwind: 2 };

  function sorted(list, by, sign) {
    return list
      .map((v) => ({ v, key: by(v) }))
      .sort((a, b) => (a.key < b.key ? -sign : a.key > b.key ? sign : 0))
      .map(({ v }) => v);
  }

  /** Reads all items, applies the steps and passes a page of the result to the callback, or sets it as the response body. */
  function evaluate(chain, options, callback) {
    const t = tail(options, callback);
    const deliver = function (err, list) {
      if (err && !t.callback) throw err;
      if (err) return t.callback(err, undefined, {});
      for (const { name, args } of chain) list = steps[name](list, ...args);
      const from = Number(t.options.continuation) || 0;
      const size = t.options.pageSize > 0 ? t.options.pageSize : list.length;
      const page = list.slice(from, from + size);
      const rest = from + size < list.length ? { continuation: String(from + size) } : {};
      if (t.callback) return t.callback(undefined, page, rest);
      response.setBody(page);
    };
    return { isAccepted: operate("scan", {}, deliver, withResource) };
  }

  function chained(chain) {
    const c = { value: (options, callback) => evaluate(chain, options, callback) };
    Object.keys(steps).forEach((name) => (c[name] = (...args) => chained([...chain, { name, args }])));
    return c;
  }

  // A single step takes options and a callback after its own arguments, which may be functions
  // too: arity says how many arguments are the step's own. The last one of flatten and of
  // unwind may be missing.
  const single = {};
  Object.keys(steps).forEach((name) => {
    single[name] = function (...args) {
      let own = args.slice(0, arity[name]);
      if (name === "flatten" && typeof own[0] !== "boolean") own = [];
      if (name === "unwind" && typeof own[1] !== "function") own = own.slice(0, 1);
      const [options, callback] = args.slice(own.length);
      return evaluate([{ name, args: own }], options, callback);
    };
  });

  const context = {
    getCollection: () => collection,
    getRequest: () => request,
    getResponse() {
      if (!host.hasResponse) throw new NumberedError(ErrorCodes.Forbidden, "There is no response before the operation.");
      return response;
    },
    abort(err) {
      throw err === undefined ? new NumberedError("The script was aborted.") : err;
    },
  };

  globalThis.ErrorCodes = ErrorCodes;
  globalThis.getContext = () => context;
  globalThis.__ = { ...collection, ...single, chain: () => chained([]), request, get response() { return context.getResponse(); } };
  globalThis.console = { log: (...args) => host.log(formatted(args)) };

  return { requestBody: () => written(requestValues), responseBody: () => written(responseValues) };
});
