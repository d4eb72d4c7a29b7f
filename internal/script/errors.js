// SPDX-License-Identifier: MIT

// Error(number, message), which the service has beside the language's Error(message). The
// client gets the number; the errors of failed operations have their status as number.
(function () {
  "use strict";

  const PlainError = Error;

  function NumberedError(number, message) {
    const numbered = typeof number === "number" && message !== undefined;
    const text = numbered ? message : number;
    const err = text === undefined ? new PlainError() : new PlainError(text);
    Object.setPrototypeOf(err, new.target ? new.target.prototype : PlainError.prototype);
    if (numbered) {
      err.number = number;
      err.body = message;
    }
    return err;
  }
  NumberedError.prototype = PlainError.prototype;
  Object.defineProperty(PlainError.prototype, "constructor", { value: NumberedError, writable: true, configurable: true });
  globalThis.Error = NumberedError;
})();
