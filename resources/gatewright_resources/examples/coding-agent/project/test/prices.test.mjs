import assert from "node:assert";
import test from "node:test";
import { total } from "../src/prices.mjs";

test("prices are added", () => assert.equal(total([2, 3]), 5));
