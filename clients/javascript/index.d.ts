// SPDX-License-Identifier: MIT

export interface Options {
  /** The program to start. Default: MAYFLY_BINARY, or mayfly. */
  binary?: string;
  /** An image to start with docker, in place of a program. */
  image?: string;
  /** More arguments for mayfly serve. */
  args?: string[];
  /** More variables of its environment. */
  env?: Record<string, string>;
}

/** Starts a server, with its data in memory and a clock that can be moved. */
export function start(options?: Options): Promise<Server>;
/** Returns a server that runs already. */
export function connect(connectionString: string): Server;

export class Server {
  readonly endpoint: string;
  readonly key: string;
  readonly connectionString: string;
  readonly clock: Clock;
  /** The certificate to trust for HTTPS, in PEM. */
  certificate(): Promise<string>;
  /** Writes it to a file, for NODE_EXTRA_CA_CERTS of another process. */
  certificateFile(): Promise<string>;
  /** Waits until the server answers. */
  ready(): Promise<void>;
  stop(): Promise<void>;
}

export class Clock {
  now(): Promise<Date>;
  /** By a duration such as "90s" or "3d", or by seconds. */
  advance(duration: string | number): Promise<void>;
  set(moment: Date | string | number): Promise<void>;
  freeze(): Promise<void>;
  release(): Promise<void>;
}
